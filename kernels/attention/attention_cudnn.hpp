#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention of bfloat16 by cuDNN, in place of the kernels of attention.cu: of whole sequences and without dropout, whose random numbers are its own. Its
// plans are chosen for a shape once; the library's version and the device decide the bits. The plans of a backward that adds its gradients in one order
// want room for a partial sum of each block of keys; those in any order want less and are faster, and no two of their results need have the same bits.
//
// It is there where this was built with cuDNN's frontend, and where the library is found at its first use.

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/attention/attention.hpp"
#include "kernels/cuda/error.hpp"

namespace rheo::inline v0::cuda {

/// What a plan is made for.
struct attention_shape {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_width;  ///< a multiple of 8

    template <class Arguments>
    static attention_shape of(Arguments const& a)
    {
        return {a.batch, a.length, a.heads, a.kv_heads == 0 ? a.heads : a.kv_heads, a.width / a.heads};
    }

    friend constexpr auto operator<=>(attention_shape const&, attention_shape const&) = default;
};

/// In which order a backward adds up gradients.
enum class order_of_sums : std::uint8_t { fixed, any };

/// For one device and one thread.
class cudnn_attention {
public:
    /// A device that is described and need not be there: plans are made for it, and nothing is computed.
    struct described_device {
        std::string properties;  ///< in JSON, as cuDNN writes them down
        int capability;          ///< 90 is 9.0
    };

    /// Of the library, as 9.19.0. @throws error where there is none, or this was built without its frontend
    static std::string version();

    /// For the current device. @throws error, as version() does
    explicit cudnn_attention(order_of_sums order);
    cudnn_attention(order_of_sums order, described_device const& device);
    ~cudnn_attention();
    cudnn_attention(cudnn_attention&&) noexcept;
    cudnn_attention& operator=(cudnn_attention&&) noexcept;

    /// Makes the plans of a shape, in some tenths of a second, as its first use would. @returns the bytes of workspace that they want, counters included
    /// @throws error when cuDNN has none
    std::int64_t choose(attention_shape const& shape);

    // As those of attention.hpp. @pre no dropout, no slices before; pointers are aligned to 16 bytes; the workspace is as large as choose() says
    void forward(stream queue, workspace scratch, attention_forward_arguments<bf16> const& arguments);
    void backward(stream queue, workspace scratch, attention_backward_arguments<bf16> const& arguments);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// Whether version() has an answer.
inline bool has_cudnn()
{
    try {
        static_cast<void>(cudnn_attention::version());
    } catch (error const&) {
        return false;
    }
    return true;
}

}  // namespace rheo::inline v0::cuda
