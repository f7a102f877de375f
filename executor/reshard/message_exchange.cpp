// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/message_exchange.hpp"

#include <algorithm>
#include <utility>

#include "executor/reshard/streaming_row.hpp"

namespace rheo::inline v0::detail {

message_stream const& message_exchange::stream_of(std::size_t k) const
{
    auto const s = k / depth;
    return s < outgoing_->size() ? (*outgoing_)[s] : (*incoming_)[s - outgoing_->size()];
}

bool message_exchange::is_in_place(packed_message const& message, bool on_host)
{
    if (!on_host || message.boxes.size() != 1 || message.boxes.front().box.change != element_change::none) {
        return false;
    }
    auto const& box = message.boxes.front().box;
    return is_one_run(box, box.to_stride) && is_one_run(box, box.from_stride);
}

void message_exchange::start_in_place(std::size_t k)
{
    auto const& message = *slots_[k].message;
    auto const& all = message.boxes.front();
    if (!sends(k)) {
        transport_.receive(k, stream_of(k).peer, all.user, message.bytes);
        return;
    }
    transport_.send(k, stream_of(k).peer, all.user, message.bytes);
    if (observe_) {  // while it travels
        observe_(all, all.user);
    }
}

bool message_exchange::start_next(std::size_t s)
{
    auto const& messages = stream_of(s * depth).messages;
    if (next_[s] == messages.size()) {
        return false;
    }
    auto const& message = messages[next_[s]];
    bool const in_place = is_in_place(message, !copy_rows_);
    auto k = s * depth + (in_place ? depth : buffered);
    do {
        if (k-- == s * depth) {
            return false;
        }
    } while (slots_[k].message != nullptr);
    ++next_[s];
    slots_[k].message = &message;
    slots_[k].in_place = in_place;
    start(k);
    return true;
}

void message_exchange::start_all(std::size_t s)
{
    while (start_next(s)) {
    }
}

/// One of each stream after the other, so that no peer waits for the messages to another.
void message_exchange::start_sends()
{
    for (bool started = true; started;) {
        started = false;
        for (std::size_t s = 0; s < outgoing_->size(); ++s) {
            started = start_next(s) || started;
        }
    }
}

void message_exchange::start(std::size_t k)
{
    auto const& stream = stream_of(k);
    auto& s = slots_[k];
    if (s.in_place) {
        start_in_place(k);
        return;
    }
    auto const& message = *s.message;
    s.buffer = sends(k) ? transport_.buffer_to(stream.peer, k, message.bytes) : transport_.buffer(k, message.bytes);
    if (!sends(k)) {
        transport_.receive(k, stream.peer, s.buffer, message.bytes);
        return;
    }
    for (std::size_t i = 0; i < message.boxes.size(); ++i) {
        auto const& b = message.boxes[i];
        if (!copy_rows_ && i + 1 < message.boxes.size()) {
            fetch_first_rows(message.boxes[i + 1].box, message.boxes[i + 1].user);
        }
        copy_strided(b.box, s.buffer + b.offset, b.user, copy_rows_, stores_);  // past the caches where there is much: another core reads it
        if (observe_) {
            observe_(b, s.buffer + b.offset);
        }
    }
    end_streams();
    transport_.send(k, stream.peer, s.buffer, message.bytes);
}

void message_exchange::unpack(std::size_t k)
{
    auto const& s = slots_[k];
    std::byte const* const landing = s.in_place ? s.message->boxes.front().user : s.buffer;
    auto const* const bytes = transport_.arrived(k, landing);
    for (auto const& b : s.message->boxes) {
        if (observe_) {
            observe_(b, bytes + b.offset);
        }
        if (!s.in_place || bytes != landing) {
            copy_strided(b.box, b.user, bytes + b.offset, copy_rows_, stores_);
        }
    }
}

void message_exchange::take(std::size_t k)
{
    unpack(k);
    transport_.taken(k);
    slots_[k].message = nullptr;
    start_all(k / depth);
}

void message_exchange::finish(std::size_t k)
{
    if (sends(k)) {
        slots_[k].message = nullptr;
        return;
    }
    auto const& sum = slots_[k].message->sum;
    if (sum.number != sum_step::none && steps_[sum.number].waits_for > 0) {
        steps_[sum.number].slot = k;
        return;
    }
    take(k);
    end_step(sum);
}

void message_exchange::open_steps(std::vector<local_copy> const& local)
{
    steps_.clear();
    ready_.clear();
    auto const open = [&](sum_step const& sum) -> open_step& {
        steps_.resize(std::max(steps_.size(), sum.number + 1));
        steps_[sum.number] = {&sum, sum.waits_for};
        return steps_[sum.number];
    };
    for (auto const& stream : *incoming_) {
        for (auto const& message : stream.messages) {
            if (message.sum.number != sum_step::none) {
                open(message.sum);
            }
        }
    }
    for (auto const& each : local) {
        if (each.sum.number != sum_step::none) {
            open(each.sum).local = &each;
        }
        if (each.sum.waits_for == 0) {
            ready_.push_back(&each);
        }
    }
    std::reverse(ready_.begin(), ready_.end());
}

/// Lets those go on that waited for a step: messages that have come are added, and their streams continue.
void message_exchange::end_step(sum_step const& step)
{
    std::vector<sum_step const*> ended{&step};
    while (!ended.empty()) {
        auto const* const one = ended.back();
        ended.pop_back();
        for (auto const number : one->then) {
            auto& next = steps_[number];
            if (--next.waits_for > 0) {
                continue;
            }
            if (next.local != nullptr) {
                ready_.push_back(next.local);
            } else if (next.slot != sum_step::none) {
                take(next.slot);
                ended.push_back(next.step);
            }
        }
    }
}

void message_exchange::run(std::vector<message_stream> const& outgoing, std::vector<message_stream> const& incoming, std::vector<local_copy> const& local,
                           std::function<void()> const& posted)
{
    outgoing_ = &outgoing;
    incoming_ = &incoming;
    next_.assign(outgoing.size() + incoming.size(), 0);
    slots_.resize(std::max(slots_.size(), next_.size() * depth));
    open_steps(local);
    for (auto s = outgoing.size(); s < next_.size(); ++s) {
        start_all(s);
    }
    start_sends();
    if (posted) {
        posted();
    }
    while (true) {
        bool const copies = !ready_.empty();
        if (copies) {
            auto const& next = *ready_.back();
            ready_.pop_back();
            if (!copy_rows_ && !ready_.empty()) {
                fetch_first_rows(ready_.back()->box, ready_.back()->from);
            }
            copy_strided(next.box, next.to, next.from, copy_rows_, stores_);
            end_step(next.sum);
        }
        auto const& ended = transport_.ended(!copies);
        if (!copies && ended.empty()) {
            end_streams();
            return;
        }
        for (auto const k : ended) {
            finish(k);
        }
        start_sends();
    }
}

}  // namespace rheo::inline v0::detail
