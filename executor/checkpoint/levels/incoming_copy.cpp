// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/incoming_copy.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/part_files.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

incoming_copy::incoming_copy(replica_route const& route, std::filesystem::path folder, copying_rank& with)
    : route_{route}, folder_{std::move(folder)}, with_{&with}
{
}

std::string incoming_copy::message() const
{
    std::lock_guard const lock{mutex_};
    return message_;
}

void incoming_copy::remove() { remove_part(folder_, route_.origin); }

void incoming_copy::progress(mpi::messenger& messages)
{
    if (step_ == step::begin) {
        message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<std::int64_t>{announced_});
        step_ = step::announced;
    }
    if (step_ == step::announced && messages.done(message_ticket_)) {
        part_ = std::make_shared<growing_part>(folder_, route_.origin, growing_part::file_sizes{announced_[0], announced_[1]});
        with_->files.add([this] { open(); });
        step_ = step::pieces;
    }
    if (step_ == step::pieces) {
        receive_pieces(messages);
    }
    if (step_ == step::ending && messages.done(message_ticket_)) {
        text_.resize(static_cast<std::size_t>(end_.about + end_.manifest));
        message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<char>{text_});
        step_ = step::texts;
    }
    if (step_ == step::texts && messages.done(message_ticket_)) {
        with_->files.add([this] { finish(); });
        step_ = step::ended;
    }
}

void incoming_copy::receive_pieces(mpi::messenger& messages)
{
    auto const count = copied_pieces::count(part_->bytes());
    for (bool moved = true; moved;) {
        moved = false;
        if (auto& s = pieces_[arrived_]; arrived_ < asked_ && s.now == copied_piece::use::at_messages && messages.done(s.message)) {
            s.now = copied_piece::use::at_files;
            with_->files.add([this, &s, piece = arrived_] { store(s, piece); });
            ++arrived_;
            moved = true;
        }
        if (auto& s = pieces_[asked_]; asked_ < count && s.now == copied_piece::use::unused) {
            auto const room = s.whole(copied_pieces::size_of(asked_, part_->bytes()));
            s.message = messages.receive(route_.from, mpi::channel::replica, route_.item, room);
            s.now = copied_piece::use::at_messages;
            ++asked_;
            moved = true;
        }
    }
    if (arrived_ == count) {
        message_ticket_ = messages.receive(route_.from, mpi::channel::replica, route_.item, std::span<copy_ending>{&end_, 1});
        step_ = step::ending;
    }
}

void incoming_copy::fail(std::string message)
{
    std::lock_guard const lock{mutex_};
    message_ = message_.empty() ? std::move(message) : message_;
    failed_ = true;
    part_->failed();
}

void incoming_copy::unless_failed(std::function<void()> const& action)
{
    if (failed_) {
        return;
    }
    if (with_->given_up) {
        return fail("it was given up");
    }
    try {
        action();
    } catch (exit_error const& error) {
        fail(error.what());
    }
}

std::string incoming_copy::message_of_sender() const
{
    return fmt::format("rank {} could not send its copy of the part of rank {}", route_.from.value, route_.origin.value);
}

void incoming_copy::open()
{
    unless_failed([&] {
        make_folder(folder_);
        for (std::size_t file = 0; file < files_.size(); ++file) {
            files_[file].emplace(part_->path(file));
        }
    });
}

void incoming_copy::store(copied_piece& s, std::int64_t piece)
{
    unless_failed([&] {
        if (s.failed()) {
            return fail(message_of_sender());
        }
        auto const first = copied_pieces::first_byte(piece);
        std::span<std::byte const> const all = s.data(copied_pieces::size_of(piece, part_->bytes()));
        auto const of_first = static_cast<std::size_t>(std::clamp<std::int64_t>(part_->sizes()[0] - first, 0, std::ssize(all)));
        files_[0]->write(all.first(of_first));
        files_[1]->write(all.subspan(of_first));
        part_->grown(first + std::ssize(all));
        if (piece == copied_pieces::count(part_->bytes()) / 2) {
            with_->at(checkpoint_point::replica_torn);
        }
    });
    s.now = copied_piece::use::unused;
}

void incoming_copy::finish()
{
    unless_failed([&] {
        if (end_.failed != 0) {
            return fail(message_of_sender());
        }
        for (auto& file : files_) {
            file->sync_and_close();
        }
        auto const about = static_cast<std::size_t>(end_.about);
        part_texts texts{text_.substr(0, about), text_.substr(about)};
        end_part(folder_, route_.origin, texts, {[](checkpoint_point) {}, [] {}});
        part_->finished(std::move(texts));
        with_->at(checkpoint_point::replica);
    });
    for (auto& file : files_) {
        file.reset();
    }
    if (failed_) {
        remove();
    }
    stored_ = true;
}

}  // namespace rheo::inline v0
