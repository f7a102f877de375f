// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/strided_copy.hpp"

#include <cstring>
#include <vector>

namespace rheo::inline v0::detail {

namespace {

template <std::size_t Bytes>
void copy_elements(row_block const& block)
{
    auto* to = block.to;
    auto const* from = block.from;
    for (std::size_t row = 0; row < block.rows; ++row, to += block.to_pitch, from += block.from_pitch) {
        std::memcpy(to, from, Bytes);
    }
}

/// Rows that are one element long are frequent (a cut of the last dimension), and a call of memcpy costs more than such a row.
void copy_on_host(row_block const& block)
{
    switch (block.row_bytes) {
    case 1: return copy_elements<1>(block);
    case 2: return copy_elements<2>(block);
    case 4: return copy_elements<4>(block);
    case 8: return copy_elements<8>(block);
    case 16: return copy_elements<16>(block);
    default: break;
    }
    auto* to = block.to;
    auto const* from = block.from;
    for (std::size_t row = 0; row < block.rows; ++row, to += block.to_pitch, from += block.from_pitch) {
        std::memcpy(to, from, block.row_bytes);
    }
}

}  // namespace

strided_box joined(strided_box const& box)
{
    strided_box result;
    result.element_bytes = box.element_bytes;
    result.change = box.change;
    for (std::size_t d = 0; d < box.dimensions; ++d) {
        if (box.extent[d] == 1) {
            continue;
        }
        auto const last = result.dimensions - 1;
        auto const length = static_cast<std::ptrdiff_t>(box.extent[d]);
        if (result.dimensions > 0 && result.to_stride[last] == box.to_stride[d] * length && result.from_stride[last] == box.from_stride[d] * length) {
            result.extent[last] *= box.extent[d];
            result.to_stride[last] = box.to_stride[d];
            result.from_stride[last] = box.from_stride[d];
        } else {
            result.extent[result.dimensions] = box.extent[d];
            result.to_stride[result.dimensions] = box.to_stride[d];
            result.from_stride[result.dimensions] = box.from_stride[d];
            ++result.dimensions;
        }
    }
    return result;
}

bool is_one_run(strided_box const& box, std::array<std::ptrdiff_t, copied_dimensions> const& stride)
{
    auto run = static_cast<std::ptrdiff_t>(box.element_bytes);
    for (std::size_t d = box.dimensions; d-- > 0;) {
        if (box.extent[d] != 1 && stride[d] != run) {
            return false;
        }
        run *= static_cast<std::ptrdiff_t>(box.extent[d]);
    }
    return true;
}

namespace {

/// Strides of the box without gaps.
std::array<std::ptrdiff_t, copied_dimensions> dense_strides(strided_box const& box, std::size_t element_bytes)
{
    std::array<std::ptrdiff_t, copied_dimensions> stride{};
    auto distance = static_cast<std::ptrdiff_t>(element_bytes);
    for (auto d = box.dimensions; d-- > 0;) {
        stride[d] = distance;
        distance *= static_cast<std::ptrdiff_t>(box.extent[d]);
    }
    return stride;
}

void change_on_host(strided_box const& box, std::byte* to, std::byte const* from)
{
    auto const rest = joined(box);
    auto const outer = rest.dimensions == 0 ? 0 : rest.dimensions - 1;
    changed_row row{to, 0, from, 0, 1};
    if (rest.dimensions > 0) {
        row.to_stride = rest.to_stride[outer];
        row.from_stride = rest.from_stride[outer];
        row.count = static_cast<std::size_t>(rest.extent[outer]);
    }
    std::array<std::int64_t, copied_dimensions> index{};
    while (true) {
        change_row(box.change, row);
        auto d = outer;
        while (d-- > 0) {
            row.to += rest.to_stride[d];
            row.from += rest.from_stride[d];
            if (++index[d] < rest.extent[d]) {
                break;
            }
            row.to -= rest.to_stride[d] * static_cast<std::ptrdiff_t>(rest.extent[d]);
            row.from -= rest.from_stride[d] * static_cast<std::ptrdiff_t>(rest.extent[d]);
            index[d] = 0;
        }
        if (d > outer) {  // it went round all of them
            return;
        }
    }
}

/// In memory of the host, from which and to which the caller's copier copies.
void change_elsewhere(strided_box const& box, std::byte* to, std::byte const* from, row_copier const& copy_rows)
{
    std::size_t count = 1;
    for (std::size_t d = 0; d < box.dimensions; ++d) {
        count *= static_cast<std::size_t>(box.extent[d]);
    }
    auto const size = bytes_of(box.change);
    std::vector<std::byte> before(count * size.from);
    std::vector<std::byte> after(count * size.to);
    auto plain = box;
    plain.change = element_change::none;
    plain.element_bytes = size.from;
    plain.to_stride = dense_strides(box, size.from);
    copy_strided(plain, before.data(), from, copy_rows);
    plain.element_bytes = size.to;
    if (adds(box.change)) {
        plain.from_stride = box.to_stride;
        plain.to_stride = dense_strides(box, size.to);
        copy_strided(plain, after.data(), to, copy_rows);
    }
    change_row(box.change, {after.data(), static_cast<std::ptrdiff_t>(size.to), before.data(), static_cast<std::ptrdiff_t>(size.from), count});
    plain.from_stride = dense_strides(box, size.to);
    plain.to_stride = box.to_stride;
    copy_strided(plain, to, after.data(), copy_rows);
}

}  // namespace

void copy_strided(strided_box const& box, std::byte* to, std::byte const* from, row_copier const& copy_rows)
{
    for (std::size_t d = 0; d < box.dimensions; ++d) {
        if (box.extent[d] <= 0) {
            return;
        }
    }
    if (box.change != element_change::none) {
        if (copy_rows) {
            change_elsewhere(box, to, from, copy_rows);
        } else {
            change_on_host(box, to, from);
        }
        return;
    }
    auto rest = joined(box);
    row_block block{to, 0, from, 0, box.element_bytes, 1};
    auto const element = static_cast<std::ptrdiff_t>(box.element_bytes);
    auto const inner = [&] { return rest.dimensions - 1; };
    if (rest.dimensions > 0 && rest.to_stride[inner()] == element && rest.from_stride[inner()] == element) {
        block.row_bytes *= static_cast<std::size_t>(rest.extent[inner()]);
        --rest.dimensions;
    }
    if (rest.dimensions > 0) {
        block.rows = static_cast<std::size_t>(rest.extent[inner()]);
        block.to_pitch = rest.to_stride[inner()];
        block.from_pitch = rest.from_stride[inner()];
        --rest.dimensions;
    }
    std::array<std::int64_t, copied_dimensions> index{};
    while (true) {
        if (copy_rows) {
            copy_rows(block);
        } else {
            copy_on_host(block);
        }
        auto d = rest.dimensions;
        while (d > 0) {
            --d;
            block.to += rest.to_stride[d];
            block.from += rest.from_stride[d];
            if (++index[d] < rest.extent[d]) {
                break;
            }
            block.to -= rest.to_stride[d] * static_cast<std::ptrdiff_t>(rest.extent[d]);
            block.from -= rest.from_stride[d] * static_cast<std::ptrdiff_t>(rest.extent[d]);
            index[d] = 0;
            if (d == 0) {
                return;
            }
        }
        if (rest.dimensions == 0) {
            return;
        }
    }
}

}  // namespace rheo::inline v0::detail
