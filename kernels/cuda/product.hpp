#pragma once
// SPDX-License-Identifier: Apache-2.0

// Products of matrices on a device, by cuBLASLt. Which algorithm computes a product decides its bits, so the choices stand in a table, made among
// algorithms that add up a sum in one sequence (no split of the terms); ranks whose tables are equal compute the same. A table can be taken over from
// another rank; it belongs to the numerics fingerprint.

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0::cuda {

/// result [rows, columns] = left [rows, terms] right [terms, columns], row after row; what decides which algorithm computes it.
struct product_shape {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t terms;
    bool left_transposed = false;   ///< left lies as [terms, rows]
    bool right_transposed = false;  ///< right lies as [columns, terms]
    dtype element = dtype::bf16;    ///< of left, right and bias: bf16 or f32; sums are float
    dtype result = dtype::bf16;     ///< the same, or f32
    bool has_bias = false;          ///< [columns] is added to each row
    bool adds = false;              ///< to what the result holds
    bool gelu = false;              ///< of the sum before it is rounded, beside the result; bf16, and then nothing is added to the result
    bool gelu_slope = false;        ///< the sum before it is rounded is multiplied by GELU's slope at what stands beside the result; bf16, and that is all
    bool left_unaligned = false;    ///< rows of left, as it lies, are apart and do not begin at multiples of products::alignment
    bool right_unaligned = false;   ///< the same of right

    friend constexpr bool operator==(product_shape const&, product_shape const&) = default;
    friend constexpr auto operator<=>(product_shape const&, product_shape const&) = default;
};

struct product_operands {
    void const* left;
    void const* right;
    void const* bias = nullptr;
    void* result;
    void* activated = nullptr;             ///< of a shape with gelu: [rows, columns], as the result
    void const* pre_activation = nullptr;  ///< of a shape with gelu_slope: [rows, columns], as the result
    // Elements from row to row as the matrix lies; 0: rows follow each other. They choose no algorithm, so they are as aligned as those that do, or the shape
    // says that they are not.
    std::int64_t left_row = 0;
    std::int64_t right_row = 0;
    std::int64_t result_row = 0;  ///< of a shape without gelu and gelu_slope
};

/// The algorithm of a shape, as cuBLASLt writes it down; all zero for a shape with gelu or gelu_slope for which it has none.
struct product_choice {
    product_shape shape;
    std::array<std::uint64_t, 8> algorithm;

    friend constexpr bool operator==(product_choice const&, product_choice const&) = default;
};

/// What cuBLASLt answers when it is asked for the algorithm of a shape.
struct product_answer {
    std::array<std::uint64_t, 8> algorithm{};
    std::int64_t workspace_bytes = 0;  ///< that it takes
    float waves = 0;                   ///< of tiles on the multiprocessors, by the library's own reckoning
    std::optional<int> splits{};       ///< parts of a sum that are added up at the end, 1 or less: none; nothing where the library does not say
    std::optional<int> reduction{};    ///< the scheme by which it adds them; 0: none
};

/// For one device and one thread.
class products {
public:
    /// Bytes of workspace beyond the counters that an algorithm may want.
    static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;
    static constexpr std::uint32_t alignment = 16;  ///< of operands, in bytes

    /// Of the library that computes them.
    static std::string version();

    products();
    ~products();
    products(products&&) noexcept;
    products& operator=(products&&) noexcept;

    /// Puts a product into the stream. @pre the workspace has counter_bytes + workspace_bytes, operands are aligned, and rows that lie apart where those that
    /// follow each other would be, unless the shape says that they are not
    /// @returns whether that is all of the shape: where no algorithm has a GELU or its slope behind its sum, there is the result alone
    /// @throws error, also when no algorithm computes the result
    bool multiply(stream queue, workspace scratch, product_shape const& shape, product_operands const& operands);

    /// Makes the library's descriptions of a product and of what is wanted of its algorithm, as a choice does. Takes no device. @throws error where the library
    /// does not take one of them
    static void describe(product_shape const& shape);
    /// What the library answers for a shape, whatever the table has: nothing where it has no algorithm. @param aligned_to bytes, of all operands @throws error
    std::optional<product_answer> answer(product_shape const& shape, std::uint32_t aligned_to = alignment) const;

    /// Chooses for a shape what is not in the table, as its first use would. @throws error when no algorithm computes it
    void choose(product_shape const& shape);
    /// All choices so far, by shape.
    std::vector<product_choice> table() const;
    /// Takes over a table; shapes that it does not have are chosen at their first use.
    void adopt(std::vector<product_choice> const& table);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace rheo::inline v0::cuda
