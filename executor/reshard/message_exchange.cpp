// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/message_exchange.hpp"

#include <algorithm>
#include <utility>

namespace rheo::inline v0::detail {

namespace {

/// Shorter rows are packed faster by us than by a datatype.
constexpr std::ptrdiff_t long_row = 256;

struct datatype {
    MPI_Datatype handle = MPI_BYTE;

    datatype() = default;
    explicit datatype(MPI_Datatype owned) : handle{owned} {}
    datatype(datatype&& other) noexcept : handle{std::exchange(other.handle, MPI_BYTE)} {}
    datatype& operator=(datatype&& other) noexcept
    {
        std::swap(handle, other.handle);
        return *this;
    }
    ~datatype()
    {
        if (handle != MPI_BYTE) {
            MPI_Type_free(&handle);
        }
    }
};

auto const& users_stride(packed_box const& b, bool outgoing) { return outgoing ? b.box.from_stride : b.box.to_stride; }

/// Whether the box is one run of its message, and rows of some length in the user's memory.
bool has_long_rows(packed_box const& b, bool outgoing)
{
    if (!is_one_run(b.box, outgoing ? b.box.to_stride : b.box.from_stride)) {
        return false;
    }
    auto const rows = joined(b.box);
    auto const element = static_cast<std::ptrdiff_t>(rows.element_bytes);
    if (rows.dimensions == 0) {
        return true;
    }
    auto const inner = rows.dimensions - 1;
    auto const run = (outgoing ? rows.from_stride : rows.to_stride)[inner] == element ? element * static_cast<std::ptrdiff_t>(rows.extent[inner]) : element;
    return run >= long_row || (rows.dimensions == 1 && run > element);
}

/// The rows of a box, from its first element on. @pre has_long_rows
datatype type_of(packed_box const& b, bool outgoing)
{
    auto const rows = joined(b.box);
    auto const& stride = outgoing ? rows.from_stride : rows.to_stride;
    auto d = rows.dimensions;
    auto run = static_cast<int>(rows.element_bytes);
    if (d > 0 && stride[d - 1] == run) {
        run *= static_cast<int>(rows.extent[--d]);
    }
    datatype type;
    mpi::check(MPI_Type_contiguous(run, MPI_BYTE, &type.handle), "MPI_Type_contiguous");
    while (d-- > 0) {
        datatype outer;
        mpi::check(MPI_Type_create_hvector(static_cast<int>(rows.extent[d]), 1, stride[d], type.handle, &outer.handle), "MPI_Type_create_hvector");
        type = std::move(outer);
    }
    return type;
}

/// All boxes of a message at their addresses.
datatype type_of(packed_message const& message, bool outgoing)
{
    std::vector<datatype> types;
    std::vector<MPI_Datatype> handles;
    std::vector<MPI_Aint> addresses;
    for (auto const& b : message.boxes) {
        types.push_back(type_of(b, outgoing));
        handles.push_back(types.back().handle);
        mpi::check(MPI_Get_address(b.user, &addresses.emplace_back()), "MPI_Get_address");
    }
    std::vector<int> const once(handles.size(), 1);
    datatype all;
    mpi::check(MPI_Type_create_struct(static_cast<int>(handles.size()), once.data(), addresses.data(), handles.data(), &all.handle), "MPI_Type_create_struct");
    return all;
}

}  // namespace

message_stream const& message_exchange::stream_of(std::size_t k) const
{
    auto const s = k / depth;
    return s < outgoing_->size() ? (*outgoing_)[s] : (*incoming_)[s - outgoing_->size()];
}

/// What is observed, and what the transport takes as bytes alone, has to be one run of memory; else rows of some length do.
bool message_exchange::goes_in_place(packed_message const& message, bool outgoing) const
{
    auto const& boxes = message.boxes;
    auto const is_plain = [&](packed_box const& b) { return b.box.change == element_change::none && has_long_rows(b, outgoing); };
    if (copy_rows_ || !std::all_of(boxes.begin(), boxes.end(), is_plain)) {
        return false;
    }
    return (transport_.takes_datatypes() && !observe_) || (boxes.size() == 1 && is_one_run(boxes.front().box, users_stride(boxes.front(), outgoing)));
}

void message_exchange::start_in_place(std::size_t k)
{
    auto const& message = *slots_[k].message;
    datatype type;
    auto* data = message.boxes.front().user;
    auto count = 1;
    if (message.boxes.size() > 1) {
        type = type_of(message, sends(k));
        data = static_cast<std::byte*>(MPI_BOTTOM);  // the type has addresses
    } else if (is_one_run(message.boxes.front().box, users_stride(message.boxes.front(), sends(k)))) {
        count = static_cast<int>(message.bytes);
    } else {
        type = type_of(message.boxes.front(), sends(k));
    }
    if (type.handle != MPI_BYTE) {
        mpi::check(MPI_Type_commit(&type.handle), "MPI_Type_commit");
    }
    if (sends(k)) {
        transport_.send(k, stream_of(k).peer, data, count, type.handle);
        if (observe_) {  // while it travels
            observe_(message.boxes.front(), data);
        }
    } else {
        transport_.receive(k, stream_of(k).peer, data, count, type.handle);
    }
}

bool message_exchange::start_next(std::size_t s)
{
    auto const& messages = stream_of(s * depth).messages;
    if (next_[s] == messages.size()) {
        return false;
    }
    auto const& message = messages[next_[s]];
    bool const in_place = goes_in_place(message, sends(s * depth));
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
    s.buffer = transport_.buffer(k, message.bytes);
    auto const count = static_cast<int>(message.bytes);
    if (!sends(k)) {
        transport_.receive(k, stream.peer, s.buffer, count, MPI_BYTE);
        return;
    }
    for (auto const& b : message.boxes) {
        copy_strided(b.box, s.buffer + b.offset, b.user, copy_rows_);
        if (observe_) {
            observe_(b, s.buffer + b.offset);
        }
    }
    transport_.send(k, stream.peer, s.buffer, count, MPI_BYTE);
}

void message_exchange::unpack(std::size_t k)
{
    auto const& s = slots_[k];
    for (auto const& b : s.message->boxes) {
        if (observe_) {
            observe_(b, s.in_place ? b.user : s.buffer + b.offset);
        }
        if (!s.in_place) {
            copy_strided(b.box, b.user, s.buffer + b.offset, copy_rows_);
        }
    }
}

void message_exchange::take(std::size_t k)
{
    unpack(k);
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
            copy_strided(next.box, next.to, next.from, copy_rows_);
            end_step(next.sum);
        }
        auto const& ended = transport_.ended(!copies);
        if (!copies && ended.empty()) {
            return;
        }
        for (auto const k : ended) {
            finish(k);
        }
        start_sends();
    }
}

}  // namespace rheo::inline v0::detail
