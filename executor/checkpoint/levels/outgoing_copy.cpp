// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/outgoing_copy.hpp"

#include <span>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

outgoing_copy::outgoing_copy(replica_route const& route, std::shared_ptr<growing_part> part, copying_rank& with)
    : route_{route}, part_{std::move(part)}, with_{&with}
{
}

void outgoing_copy::progress(mpi::messenger& messages)
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
        send_pieces(messages);
    }
    if (step_ == step::waiting) {
        send_ending(messages);
    }
    if (step_ == step::ending && messages.done(message_ticket_)) {
        message_ticket_ = messages.send(route_.to, mpi::channel::replica, route_.item, std::span<char const>{text_});
        step_ = step::texts;
    }
    if (step_ == step::texts && messages.done(message_ticket_)) {
        step_ = step::ended;
    }
}

void outgoing_copy::send_pieces(mpi::messenger& messages)
{
    auto const count = copied_pieces::count(part_->bytes());
    auto const now = part_->look();
    for (bool moved = true; moved;) {
        moved = false;
        if (auto& s = pieces_[done_]; done_ < sent_ && s.now == copied_piece::use::at_messages && messages.done(s.message)) {
            s.now = copied_piece::use::unused;
            ++done_;
            moved = true;
        }
        if (auto& s = pieces_[sent_]; sent_ < filling_ && s.now == copied_piece::use::filled) {
            std::span<std::byte const> const filled = s.whole(copied_pieces::size_of(sent_, part_->bytes()));
            s.message = messages.send(route_.to, mpi::channel::replica, route_.item, filled);
            s.now = copied_piece::use::at_messages;
            ++sent_;
            moved = true;
        }
        if (auto& s = pieces_[filling_]; filling_ < count && s.now == copied_piece::use::unused) {
            auto const until = copied_pieces::first_byte(filling_) + static_cast<std::int64_t>(copied_pieces::size_of(filling_, part_->bytes()));
            if (now.there >= until || now.failed || with_->given_up) {
                s.now = copied_piece::use::at_files;
                with_->files.add([this, &s, piece = filling_] { fill(s, piece); });
                ++filling_;
                moved = true;
            }
        }
    }
    if (done_ == count) {
        step_ = step::waiting;
    }
}

/// When the part is whole here, or will never be.
void outgoing_copy::send_ending(mpi::messenger& messages)
{
    auto const now = part_->look();
    if (!now.finished && !now.failed && !with_->given_up) {
        return;
    }
    bool const right = now.finished && !failed_ && !with_->given_up;
    text_ = right ? part_->texts().about + part_->texts().manifest : std::string{};
    end_ = right ? copy_ending{std::ssize(part_->texts().about), std::ssize(part_->texts().manifest), 0} : copy_ending{0, 0, 1};
    message_ticket_ = messages.send(route_.to, mpi::channel::replica, route_.item, std::span<copy_ending const>{&end_, 1});
    step_ = step::ending;
}

void outgoing_copy::fill(copied_piece& s, std::int64_t piece)
{
    failed_ = failed_ || with_->given_up || part_->look().failed;
    if (!failed_) {
        try {
            part_->read(copied_pieces::first_byte(piece), s.data(copied_pieces::size_of(piece, part_->bytes())));
        } catch (exit_error const&) {
            failed_ = true;
        }
    }
    s.set_failed(failed_);
    s.now = copied_piece::use::filled;
}

}  // namespace rheo::inline v0
