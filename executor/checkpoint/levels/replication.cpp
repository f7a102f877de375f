// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/replication.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

using ticket = mpi::messenger::ticket;

/// What begins each route: the sizes of the two files.
using announcement = std::array<std::int64_t, 2>;

/// What ends it: the sizes of the two texts, and whether all pieces were right.
struct ending {
    std::int64_t about = 0;
    std::int64_t manifest = 0;
    std::int64_t failed = 0;
};

/// A piece with a word before it: whether it has data.
struct slot {
    enum class use : std::uint8_t { unused, at_files, filled, at_messages };

    std::vector<std::byte> buffer = std::vector<std::byte>(sizeof(std::int64_t) + replication::piece_bytes);
    std::atomic<use> now{use::unused};
    ticket message{};

    std::span<std::byte> data(std::size_t count) { return std::span{buffer}.subspan(sizeof(std::int64_t), count); }
    std::span<std::byte> whole(std::size_t count) { return std::span{buffer}.first(sizeof(std::int64_t) + count); }
    void set_failed(bool failed)
    {
        std::int64_t const word = failed ? 1 : 0;
        std::copy_n(reinterpret_cast<std::byte const*>(&word), sizeof word, buffer.begin());
    }
    bool failed() const
    {
        std::int64_t word = 0;
        std::copy_n(buffer.begin(), sizeof word, reinterpret_cast<std::byte*>(&word));
        return word != 0;
    }
};

std::int64_t pieces_of(std::int64_t bytes) { return (bytes + std::int64_t{replication::piece_bytes} - 1) / std::int64_t{replication::piece_bytes}; }

std::size_t size_of_piece(std::int64_t piece, std::int64_t bytes)
{
    return static_cast<std::size_t>(std::min(std::int64_t{replication::piece_bytes}, bytes - piece * std::int64_t{replication::piece_bytes}));
}

using slots = std::array<slot, replication::pieces_under_way>;
slot& slot_of(slots& all, std::int64_t piece) { return all[static_cast<std::size_t>(piece) % all.size()]; }

}  // namespace

/// A copy that arrives here.
class replication::incoming {
public:
    incoming(replica_route const& route, std::filesystem::path folder) : route_{route}, folder_{std::move(folder)} {}

    /// None until its size is known.
    std::shared_ptr<growing_part> const& part() const { return part_; }
    rank_id origin() const { return route_.origin; }
    bool done() const { return step_ == step::ended && stored_; }
    std::string message() const
    {
        std::lock_guard const lock{mutex_};
        return message_;
    }

    void progress(replication& all, mpi::messenger& messages)
    {
        if (step_ == step::begin) {
            message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<std::int64_t>{announced_});
            step_ = step::announced;
        }
        if (step_ == step::announced && messages.done(message_ticket_)) {
            part_ = std::make_shared<growing_part>(folder_, route_.origin, growing_part::file_sizes{announced_[0], announced_[1]});
            all.files_.add([this, &all] { open(all); });
            step_ = step::pieces;
        }
        if (step_ == step::pieces) {
            receive_pieces(all, messages);
        }
        if (step_ == step::ending && messages.done(message_ticket_)) {
            text_.resize(static_cast<std::size_t>(end_.about + end_.manifest));
            message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<char>{text_});
            step_ = step::texts;
        }
        if (step_ == step::texts && messages.done(message_ticket_)) {
            all.files_.add([this, &all] { finish(all); });
            step_ = step::ended;
        }
    }

    /// The messages will not come.
    void forget() { step_ = step::ended; }
    /// @pre the files' thread is done  @returns it is here whole
    bool is_whole() const { return part_ != nullptr && part_->look().finished; }
    void remove() { remove_part(folder_, route_.origin); }

private:
    enum class step : std::uint8_t { begin, announced, pieces, ending, texts, ended };

    void receive_pieces(replication& all, mpi::messenger& messages)
    {
        auto const count = pieces_of(part_->bytes());
        for (bool moved = true; moved;) {
            moved = false;
            if (auto& s = slot_of(slots_, arrived_); arrived_ < asked_ && s.now == slot::use::at_messages && messages.done(s.message)) {
                s.now = slot::use::at_files;
                all.files_.add([this, &all, &s, piece = arrived_] { store(all, s, piece); });
                ++arrived_;
                moved = true;
            }
            if (auto& s = slot_of(slots_, asked_); asked_ < count && s.now == slot::use::unused) {
                s.message = messages.receive(route_.from, mpi::channel::replica, route_.item, s.whole(size_of_piece(asked_, part_->bytes())));
                s.now = slot::use::at_messages;
                ++asked_;
                moved = true;
            }
        }
        if (arrived_ == count) {
            message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<ending>{&end_, 1});
            step_ = step::ending;
        }
    }

    // in the files' thread

    void fail(std::string message)
    {
        std::lock_guard const lock{mutex_};
        message_ = message_.empty() ? std::move(message) : message_;
        failed_ = true;
        part_->failed();
    }

    template <class Action>
    void unless_failed(replication& all, Action action)
    {
        if (failed_) {
            return;
        }
        if (all.given_up_) {
            return fail("it was given up");
        }
        try {
            action();
        } catch (exit_error const& error) {
            fail(error.what());
        }
    }

    void open(replication& all)
    {
        unless_failed(all, [&] {
            make_folder(folder_);
            for (std::size_t file = 0; file < files_.size(); ++file) {
                files_[file].emplace(part_->path(file));
            }
        });
    }

    void store(replication& all, slot& s, std::int64_t piece)
    {
        unless_failed(all, [&] {
            if (s.failed()) {
                return fail(fmt::format("rank {} could not send its copy of the part of rank {}", route_.from.value, route_.origin.value));
            }
            auto first = piece * std::int64_t{piece_bytes};
            auto const& sizes = part_->sizes();
            std::span<std::byte const> rest = s.data(size_of_piece(piece, part_->bytes()));
            auto const of_first = static_cast<std::size_t>(std::clamp<std::int64_t>(sizes[0] - first, 0, std::ssize(rest)));
            files_[0]->write(rest.first(of_first));
            files_[1]->write(rest.subspan(of_first));
            first += std::ssize(rest);
            part_->grown(first);
            if (piece == pieces_of(part_->bytes()) / 2) {
                all.at_(checkpoint_point::replica_torn);
            }
        });
        s.now = slot::use::unused;
    }

    void finish(replication& all)
    {
        unless_failed(all, [&] {
            if (end_.failed != 0) {
                return fail(fmt::format("rank {} could not send its copy of the part of rank {}", route_.from.value, route_.origin.value));
            }
            for (auto& file : files_) {
                file->sync_and_close();
            }
            auto const about = static_cast<std::size_t>(end_.about);
            part_texts texts{text_.substr(0, about), text_.substr(about)};
            end_part(folder_, route_.origin, texts, {[](checkpoint_point) {}, [] {}});
            part_->finished(std::move(texts));
            all.at_(checkpoint_point::replica);
        });
        for (auto& file : files_) {
            file.reset();
        }
        if (failed_) {
            remove();
        }
        stored_ = true;
    }

    replica_route route_;
    std::filesystem::path folder_;
    step step_ = step::begin;
    ticket message_ticket_{};
    announcement announced_{};
    ending end_{};
    std::string text_;
    std::shared_ptr<growing_part> part_;
    slots slots_{};
    std::int64_t asked_ = 0;    ///< pieces
    std::int64_t arrived_ = 0;  ///< of these
    std::array<std::optional<output_file>, 2> files_{};
    std::atomic<bool> failed_{false};
    std::atomic<bool> stored_{false};
    mutable std::mutex mutex_{};
    std::string message_{};
};

/// A copy that is made from here.
class replication::outgoing {
public:
    /// @param part null: it arrives here, too, later
    outgoing(replica_route const& route, std::shared_ptr<growing_part> part) : route_{route}, part_{std::move(part)} {}

    bool waits_for(incoming const& one) const { return part_ == nullptr && one.origin() == route_.origin && one.part() != nullptr; }
    void take(std::shared_ptr<growing_part> part) { part_ = std::move(part); }
    bool done() const { return step_ == step::ended; }
    void forget() { step_ = step::ended; }

    void progress(replication& all, mpi::messenger& messages)
    {
        if (step_ == step::begin && part_ != nullptr) {
            announced_ = {part_->sizes()[0], part_->sizes()[1]};
            message_ticket_ = messages.send(route_.to, mpi::channel::replica, route_.item, std::span<std::int64_t const>{announced_});
            step_ = step::announced;
        }
        if (step_ == step::announced && messages.done(message_ticket_)) {
            step_ = step::pieces;
        }
        if (step_ == step::pieces) {
            send_pieces(all, messages);
        }
        if (step_ == step::waiting) {
            if (auto const now = part_->look(); now.finished || now.failed || all.given_up_) {
                bool const right = now.finished && !failed_ && !all.given_up_;
                text_ = right ? part_->texts().about + part_->texts().manifest : std::string{};
                end_ = right ? ending{std::ssize(part_->texts().about), std::ssize(part_->texts().manifest), 0} : ending{0, 0, 1};
                message_ticket_ = messages.send(route_.to, mpi::channel::replica, route_.item, std::span<ending const>{&end_, 1});
                step_ = step::ending;
            }
        }
        if (step_ == step::ending && messages.done(message_ticket_)) {
            message_ticket_ = messages.send(route_.to, mpi::channel::replica, route_.item, std::span<char const>{text_});
            step_ = step::texts;
        }
        if (step_ == step::texts && messages.done(message_ticket_)) {
            step_ = step::ended;
        }
    }

private:
    enum class step : std::uint8_t { begin, announced, pieces, waiting, ending, texts, ended };

    void send_pieces(replication& all, mpi::messenger& messages)
    {
        auto const count = pieces_of(part_->bytes());
        auto const now = part_->look();
        for (bool moved = true; moved;) {
            moved = false;
            if (auto& s = slot_of(slots_, done_); done_ < sent_ && s.now == slot::use::at_messages && messages.done(s.message)) {
                s.now = slot::use::unused;
                ++done_;
                moved = true;
            }
            if (auto& s = slot_of(slots_, sent_); sent_ < filling_ && s.now == slot::use::filled) {
                s.message =
                    messages.send(route_.to, mpi::channel::replica, route_.item, std::span<std::byte const>{s.whole(size_of_piece(sent_, part_->bytes()))});
                s.now = slot::use::at_messages;
                ++sent_;
                moved = true;
            }
            if (auto& s = slot_of(slots_, filling_); filling_ < count && s.now == slot::use::unused) {
                auto const until = filling_ * std::int64_t{piece_bytes} + static_cast<std::int64_t>(size_of_piece(filling_, part_->bytes()));
                if (now.there >= until || now.failed || all.given_up_) {
                    s.now = slot::use::at_files;
                    all.files_.add([this, &all, &s, piece = filling_] { fill(all, s, piece); });
                    ++filling_;
                    moved = true;
                }
            }
        }
        if (done_ == count) {
            step_ = step::waiting;
        }
    }

    /// In the files' thread.
    void fill(replication& all, slot& s, std::int64_t piece)
    {
        failed_ = failed_ || all.given_up_ || part_->look().failed;
        if (!failed_) {
            try {
                part_->read(piece * std::int64_t{piece_bytes}, s.data(size_of_piece(piece, part_->bytes())));
            } catch (exit_error const&) {
                failed_ = true;
            }
        }
        s.set_failed(failed_);
        s.now = slot::use::filled;
    }

    replica_route route_;
    std::shared_ptr<growing_part> part_;
    step step_ = step::begin;
    ticket message_ticket_{};
    announcement announced_{};
    ending end_{};
    std::string text_;
    slots slots_{};
    std::int64_t filling_ = 0;  ///< pieces that were given to the files' thread
    std::int64_t sent_ = 0;     ///< of these
    std::int64_t done_ = 0;     ///< of these
    std::atomic<bool> failed_{false};
};

replication::replication(rank_id self, std::function<void(checkpoint_point)> at) : self_{self}, at_{std::move(at)} {}
replication::~replication() { files_.wait(); }

void replication::begin(std::span<replica_route const> routes, std::filesystem::path const& folder, std::shared_ptr<growing_part> own)
{
    expects(done(), "copies of a checkpoint begin when those of the last one are at their end");
    files_.wait();
    incoming_.clear();
    outgoing_.clear();
    given_up_ = false;
    for (auto const& route : routes) {
        if (route.to == self_) {
            incoming_.push_back(std::make_unique<incoming>(route, folder));
        }
        if (route.from == self_) {
            outgoing_.push_back(std::make_unique<outgoing>(route, route.origin == self_ ? own : nullptr));
        }
    }
}

void replication::progress(mpi::messenger& messages)
{
    for (auto const& one : incoming_) {
        one->progress(*this, messages);
    }
    for (auto const& one : outgoing_) {
        for (auto const& source : incoming_) {
            if (one->waits_for(*source)) {
                one->take(source->part());
            }
        }
        one->progress(*this, messages);
    }
}

bool replication::done() const
{
    auto const is_done = [](auto const& one) { return one->done(); };
    return std::all_of(incoming_.begin(), incoming_.end(), is_done) && std::all_of(outgoing_.begin(), outgoing_.end(), is_done);
}

std::string replication::message() const
{
    for (auto const& one : incoming_) {
        if (auto message = one->message(); !message.empty()) {
            return message;
        }
    }
    return {};
}

void replication::give_up() { given_up_ = true; }

void replication::forget()
{
    given_up_ = true;
    files_.wait();
    for (auto const& one : incoming_) {
        if (!one->is_whole()) {
            one->remove();
        }
    }
    incoming_.clear();
    outgoing_.clear();
    given_up_ = false;
}

}  // namespace rheo::inline v0
