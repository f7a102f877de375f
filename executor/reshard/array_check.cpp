// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/array_check.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0::detail {

namespace {

std::string quoted(tensor_name const& name) { return '"' + std::string{name.view()} + '"'; }

char const* name_of_role(tensor_role role)
{
    constexpr char const* names[] = {"parameter", "first moment", "second moment", "accumulator"};
    return names[static_cast<std::size_t>(role)];
}

/// What the sentences about an array begin with: `held array 2 (tensor "w", parameter, [0:4, 0:8]) `.
template <class Memory>
std::string place_of(layout_tensor const& tensor, array_at<Memory> const& array, char const* kind, std::size_t number)
{
    return std::string{kind} + " array " + std::to_string(number) + " (tensor " + quoted(tensor.name) + ", " + name_of_role(array.role) + ", " +
           to_string(array.box) + ") ";
}

/// "4 bytes (f32)"
std::string described(element_format const& format)
{
    return std::to_string(format.size.count) + " bytes" + (format.type ? " (" + std::string{name_of(*format.type)} + ")" : "");
}

/// Strides in bytes, or nothing when they are too many, too few or too long.
template <class Memory>
std::optional<local_array> located(array_at<Memory> const& array, std::size_t number)
{
    auto const size = array.element.size.count;
    local_array result{array.box, static_cast<std::byte*>(const_cast<void*>(static_cast<void const*>(array.data))), {}, static_cast<std::size_t>(size), number};
    auto const dimensions = static_cast<std::size_t>(array.box.dimensions);
    if (!array.strides.empty() && array.strides.size() != dimensions) {
        return std::nullopt;
    }
    std::int64_t dense = 1;
    for (auto d = dimensions; d-- > 0;) {
        auto const stride = array.strides.empty() ? dense : array.strides[d];
        std::int64_t in_bytes = 0;
        std::int64_t reach = 0;
        auto const range = length(array.box[static_cast<int>(d)]);
        if (__builtin_mul_overflow(stride, size, &in_bytes) || __builtin_mul_overflow(in_bytes, range, &reach) ||
            __builtin_mul_overflow(dense, range == 0 ? 1 : range, &dense)) {
            return std::nullopt;
        }
        result.stride[d] = static_cast<std::ptrdiff_t>(in_bytes);
    }
    return result;
}

/// Whether the first of the dimensions that have several elements is nearer than the last; also where there is but one.
bool is_column_major(local_array const& array)
{
    auto const many = [&](int d) { return length(array.box[d]) > 1; };
    int first = 0;
    auto last = array.box.dimensions - 1;
    while (first < last && !many(first)) {
        ++first;
    }
    while (first < last && !many(last)) {
        --last;
    }
    return first == last || std::abs(array.stride[static_cast<std::size_t>(first)]) < std::abs(array.stride[static_cast<std::size_t>(last)]);
}

/// Whether elements of an array that is written lie on each other for certain: one step of a dimension is shorter than an element, or all of them
/// together span fewer bytes than they have.
bool overlaps_itself(local_array const& array)
{
    auto const element = static_cast<std::int64_t>(array.element_bytes);
    std::int64_t span = element;
    for (int d = 0; d < array.box.dimensions; ++d) {
        if (length(array.box[d]) < 2) {
            continue;
        }
        auto const step = std::abs(static_cast<std::int64_t>(array.stride[static_cast<std::size_t>(d)]));
        if (step < element) {
            return true;
        }
        if (__builtin_add_overflow(span, (length(array.box[d]) - 1) * step, &span)) {
            return false;
        }
    }
    return span / element < elements(array.box);
}

/// @return what is wrong with one array by itself; else it is in `into`
template <class Memory>
std::string take(reshard_plan const& plan, array_at<Memory> const& array, char const* kind, std::size_t number, local_arrays& into, checked_arrays& all)
{
    if (array.tensor.value < 0 || at(array.tensor) >= plan.tensors.size()) {
        return std::string{kind} + " array " + std::to_string(number) + " is of tensor number " + std::to_string(array.tensor.value) + ", but the plan has " +
               std::to_string(plan.tensors.size()) + " tensors";
    }
    auto const& tensor = plan.tensors[at(array.tensor)];
    auto const place = place_of(tensor, array, kind, number);
    bool const is_held = std::is_const_v<Memory>;
    auto const moving = format_of(plan, array.tensor, array.role);
    auto const& format = is_held ? moving.held : moving.wanted;
    if (array.box.dimensions != tensor.shape.dimensions) {
        return place + "has " + std::to_string(array.box.dimensions) + " dimensions, but the tensor has " + std::to_string(tensor.shape.dimensions);
    }
    if (format.size.count == 0) {
        return place + "is of a role that the tensor does not have";
    }
    if (array.element.size != format.size || (array.element.type && format.type && *array.element.type != *format.type)) {
        return place + "has elements of " + described(array.element) + ", but the plan " + (is_held ? "takes" : "brings") + " elements of " + described(format);
    }
    if (!count_elements(array.box)) {
        return place + "has more elements than 64 bits can count";
    }
    if (is_empty(array.box)) {
        return {};
    }
    if (array.data == nullptr) {
        return place + "has no address";
    }
    auto const found = located(array, number);
    if (!found) {
        return place + "has " + std::to_string(array.strides.size()) + " strides that do not fit: one per dimension, the bytes between two elements in 64 bits";
    }
    if (!is_held && overlaps_itself(*found)) {
        return place + "has strides by which several of its elements share memory: give each element its own";
    }
    into.add(array.tensor, array.role, *found);
    all.is_column_major = all.is_column_major && is_column_major(*found);
    return {};
}

/// @return what this rank has to send, keep or receive and has no array for
std::string first_gap(reshard_plan const& plan, rank_id self, checked_arrays const& arrays)
{
    std::string fault;
    auto const look = [&](local_arrays const& in, char const* verb, char const* kind, tensor_id tensor, role_set roles, nd_box const& box) {
        auto const& info = plan.tensors[at(tensor)];
        auto const data = intersection(box, whole(info.shape));
        for (int r = 0; fault.empty() && r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (!roles.has(role) || info.element[static_cast<std::size_t>(r)].size.count == 0) {
                continue;
            }
            if (auto const gap = in.missing(tensor, role, data); !is_empty(gap)) {
                fault = std::string{"the plan lets it "} + verb + " " + to_string(gap) + " of tensor " + quoted(info.name) + " (" + name_of_role(role) +
                        "), but none of its " + kind + " arrays has these elements";
            }
        }
    };
    for (auto const& t : plan.transfers) {
        if (t.from == self) {
            look(arrays.held, "send", "held", t.tensor, t.roles, t.box);
        }
        if (t.to == self) {
            look(arrays.wanted, "receive", "wanted", t.tensor, t.roles, t.box);
        }
    }
    for (auto const& place : plan.kept) {
        for (auto const rank : place.ranks) {
            for (std::size_t i = 0; rank == self && i < place.parts.size(); ++i) {
                auto const& part = place.parts[i];
                look(arrays.held, "keep", "held", part.tensor, part.roles, part.box);
                look(arrays.wanted, "keep", "wanted", part.tensor, part.roles, part.box);
            }
        }
    }
    return fault;
}

/// @return an array that is to be converted or added into the memory from which it comes
std::string shared_memory(reshard_plan const& plan, array_view<held_array const> held, array_view<wanted_array const> wanted)
{
    for (std::size_t w = 0; !plan.held.empty() && w < wanted.size(); ++w) {
        auto const& array = wanted[w];
        auto const format = format_of(plan, array.tensor, array.role);
        for (std::size_t h = 0; h < held.size() && (format.is_addend || format.held != format.wanted); ++h) {
            if (held[h].tensor == array.tensor && held[h].role == array.role && held[h].data == array.data && !is_empty(held[h].box) && !is_empty(array.box)) {
                return place_of(plan.tensors[at(array.tensor)], array, "wanted", w) + "has the memory of held array " + std::to_string(h) +
                       ", but its elements are " + (format.is_addend ? "added" : "converted") + ": give it memory of its own";
            }
        }
    }
    return {};
}

/// Numbers that are the same on two ranks when their plans are; in practice, else they differ.
std::int64_t digest_of_plan(reshard_plan const& plan)
{
    sequence_digest digest{"reshard"};
    auto const mix = [&](nd_box const& box) {
        digest.mix(box.dimensions);
        for (int d = 0; d < box.dimensions; ++d) {
            digest.mix(box[d].begin);
            digest.mix(box[d].end);
        }
    };
    for (auto const& tensor : plan.tensors) {
        mix(whole(tensor.shape));
        for (auto const& format : tensor.element) {
            digest.mix(format.size.count);
        }
    }
    for (auto const& held : plan.held) {
        digest.mix(held.addends.bits);
        for (auto const& format : held.element) {
            digest.mix(format.type ? static_cast<std::int64_t>(*format.type) : -format.size.count);
        }
    }
    digest.mix(plan.dropped.empty() ? 0 : 1);  // with drops, all ranks wait for each other after a round
    for (auto const& t : plan.transfers) {
        digest.mix(t.round);
        digest.mix(std::int64_t{t.from.value} << 32 | t.to.value);
        digest.mix(std::int64_t{t.tensor.value} << 8 | t.roles.bits);
        mix(t.box);
    }
    return static_cast<std::int64_t>(digest.value().low >> 1U);
}

}  // namespace

checked_arrays check_arrays(reshard_plan const& plan, rank_id self, array_view<held_array const> held, array_view<wanted_array const> wanted)
{
    checked_arrays all;
    auto const take_all = [&](auto const& arrays, char const* kind, local_arrays& into) {
        for (std::size_t i = 0; all.fault.empty() && i < arrays.size(); ++i) {
            all.fault = take(plan, arrays[i], kind, i, into, all);
        }
        if (auto const overlaps = into.sort(); all.fault.empty() && !overlaps.empty()) {
            auto const& [a, b] = overlaps.front();
            all.fault = place_of(plan.tensors[at(arrays[b].tensor)], arrays[b], kind, b) + "has elements that array " + std::to_string(a) +
                        " has, too: " + to_string(intersection(arrays[a].box, arrays[b].box));
        }
    };
    take_all(held, "held", all.held);
    take_all(wanted, "wanted", all.wanted);
    if (all.fault.empty()) {
        all.fault = first_gap(plan, self, all);
    }
    if (all.fault.empty()) {
        all.fault = shared_memory(plan, held, wanted);
    }
    return all;
}

element_order agree_on(mpi::communicator const& comm, reshard_plan const& plan, checked_arrays const& arrays, bytes message)
{
    auto const digest = digest_of_plan(plan);
    auto const size = comm.size();
    // The largest of each: the lowest rank with a fault, the plans' digests and the messages' lengths from both ends, whether some arrays are row-major.
    std::array<std::int64_t, 6> mine{
        arrays.fault.empty() ? 0 : size - comm.rank(), digest, -digest, message.count, -message.count, arrays.is_column_major ? 0 : 1};
    std::array<std::int64_t, mine.size()> most{};
    mpi::check(MPI_Allreduce(mine.data(), most.data(), static_cast<int>(mine.size()), MPI_INT64_T, MPI_MAX, comm.handle()), "MPI_Allreduce");
    if (most[0] > 0) {
        int const culprit = size - static_cast<int>(most[0]);
        auto sentence = "rank " + std::to_string(culprit) + " of the communicator: " + arrays.fault;
        auto length = static_cast<int>(sentence.size());
        mpi::check(MPI_Bcast(&length, 1, MPI_INT, culprit, comm.handle()), "MPI_Bcast");
        sentence.resize(static_cast<std::size_t>(length));
        mpi::check(MPI_Bcast(sentence.data(), length, MPI_CHAR, culprit, comm.handle()), "MPI_Bcast");
        throw mismatched_arrays{sentence};
    }
    if (most[1] != -most[2]) {
        throw mismatched_arrays{"the ranks have different plans: make the plan on every rank from the same layouts, or on one and send it to all"};
    }
    if (most[3] != -most[4]) {
        throw mismatched_arrays{"the options have messages of " + std::to_string(-most[4]) + " bytes at one rank and of " + std::to_string(most[3]) +
                                " at another: give all ranks the same length"};
    }
    return most[5] > 0 ? element_order::row_major : element_order::column_major;
}

}  // namespace rheo::inline v0::detail
