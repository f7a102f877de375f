#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is going to happen, taken out in the order of time and, at one time, in the order of its number. Where many things do the same they happen at the
// same times: what is put in at a time that was put in shortly before stands in a line behind that, and only lines are in the heap. The heap has four
// children per node: half the levels of a binary one, and the children share cache lines.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rheo::inline v0 {

/// @tparam Time with a `count` @tparam Subject
template <class Time, class Subject>
class event_queue {
public:
    struct event {
        Time at;
        std::uint64_t number;
        Subject subject;
    };

    bool empty() const { return heap_.empty(); }
    /// When the next event is. @pre not empty
    Time next_time() const { return heap_.front().at; }

    void push(event const& put)
    {
        auto const place = take_place(put);
        auto& recent = recent_[slot_of(put.at)];
        if (recent < lines_.size()) {
            auto& line = lines_[recent];
            if (line.first != nothing && line.at == put.at && places_[line.last].number < put.number) {
                places_[line.last].behind = place;
                line.last = place;
                return;
            }
        }
        recent = take_line({put.at, place, place});
        heap_.push_back({});
        sift_up({put.at, put.number, recent}, heap_.size() - 1);
    }

    /// @pre not empty
    event pop()
    {
        auto const top = heap_.front();
        auto& line = lines_[top.line];
        auto const taken = line.first;
        auto const of = places_[taken];
        free_places_.push_back(taken);
        line.first = of.behind;
        if (line.first != nothing) {
            sift_down({top.at, places_[line.first].number, top.line});
        } else {
            free_lines_.push_back(top.line);
            auto const last = heap_.back();
            heap_.pop_back();
            if (!heap_.empty()) {
                sift_down(last);
            }
        }
        return {top.at, top.number, of.subject};
    }

private:
    static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

    /// Of one event.
    struct line_place {
        std::uint64_t number;
        Subject subject;
        std::uint32_t behind;  ///< the next of its line
    };
    /// Events of one time, ascending by number.
    struct event_line {
        Time at;
        std::uint32_t first;  ///< nothing: the line is not in use
        std::uint32_t last;
    };
    struct heap_entry {
        Time at;
        std::uint64_t number;  ///< of the first of the line
        std::uint32_t line;
    };

    static std::size_t slot_of(Time at)
    {
        auto const bits = std::bit_cast<std::uint64_t>(static_cast<double>(at.count));
        return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15U) >> 56U);
    }

    template <class T>
    static std::uint32_t taken(std::vector<T>& all, std::vector<std::uint32_t>& free, T const& put)
    {
        if (free.empty()) {
            all.push_back(put);
            return static_cast<std::uint32_t>(all.size() - 1);
        }
        auto const place = free.back();
        free.pop_back();
        all[place] = put;
        return place;
    }

    std::uint32_t take_place(event const& put) { return taken(places_, free_places_, {put.number, put.subject, nothing}); }
    std::uint32_t take_line(event_line const& line) { return taken(lines_, free_lines_, line); }

    /// Without branches: which of two comes first cannot be foretold.
    static bool before(heap_entry const& a, heap_entry const& b)
    {
        return (static_cast<unsigned>(a.at < b.at) | (static_cast<unsigned>(!(b.at < a.at)) & static_cast<unsigned>(a.number < b.number))) != 0;
    }

    /// The first of the children from `begin` on. @pre there is one
    std::size_t first_child(std::size_t begin) const
    {
        if (begin + 4 > heap_.size()) {
            auto first = begin;
            for (auto child = begin + 1; child < heap_.size(); ++child) {
                first = before(heap_[child], heap_[first]) ? child : first;
            }
            return first;
        }
        auto const one = begin + static_cast<std::size_t>(before(heap_[begin + 1], heap_[begin]));
        auto const other = begin + 2 + static_cast<std::size_t>(before(heap_[begin + 3], heap_[begin + 2]));
        return before(heap_[other], heap_[one]) ? other : one;
    }

    /// Puts an entry into the hole at the top.
    void sift_down(heap_entry const& put)
    {
        std::size_t hole = 0;
        for (auto begin = std::size_t{1}; begin < heap_.size(); begin = 4 * hole + 1) {
            auto const first = first_child(begin);
            if (before(put, heap_[first])) {
                break;
            }
            heap_[hole] = heap_[first];
            hole = first;
        }
        heap_[hole] = put;
    }

    void sift_up(heap_entry const& put, std::size_t hole)
    {
        while (hole > 0 && before(put, heap_[(hole - 1) / 4])) {
            heap_[hole] = heap_[(hole - 1) / 4];
            hole = (hole - 1) / 4;
        }
        heap_[hole] = put;
    }

    std::vector<heap_entry> heap_;
    std::vector<line_place> places_;
    std::vector<event_line> lines_;
    std::vector<std::uint32_t> free_places_;
    std::vector<std::uint32_t> free_lines_;
    std::array<std::uint32_t, 256> recent_{};  ///< lines that were put into last, by their times
};

}  // namespace rheo::inline v0
