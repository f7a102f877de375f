#pragma once
// SPDX-License-Identifier: Apache-2.0

// Config keys that take one of a few words. Each is an enum; its words stand here once, in the order of the enumerators, for reading, writing and the
// reference.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "rheo/model/rope_scaling.hpp"

namespace rheo::inline v0 {

/// Hugging Face's model types. All but gpt2 have the layers of a Llama.
enum class model_family : std::uint8_t { gpt2, llama, mistral, qwen2, qwen3 };

/// What stages store.
enum class stored_numbers : std::uint8_t { float32, brain_float16 };

/// Sequences begin anywhere, or are cut once and shuffled, each once per epoch.
enum class data_order : std::uint8_t { random, epochs };

/// How the learning rate goes on after the warm-up (learning_rate.hpp).
enum class rate_schedule : std::uint8_t { cosine, linear, constant, wsd, table };

/// The integers of exact gradient sums.
enum class sum_integers : std::uint8_t { int64, int32 };

/// The device whose clock is set and whose energy is read; `automatic`: nvml where there is one, else cpu.
enum class power_source : std::uint8_t { none, emulated, nvml, cpu, automatic };

/// How long an emulated device takes: as long as this machine, stretched by the clock, or as the profile says.
enum class emulation_pace : std::uint8_t { machine, profile };

enum class compute_device : std::uint8_t { cpu, cuda };

/// What computes attention in bf16 on a device; automatic: the quickest that computes the model there.
enum class attention_kernel : std::uint8_t { automatic, warp, warpgroup, cudnn };

/// What moves data between GPUs; automatic: NCCL where all ranks have it, with a device each.
enum class transport_choice : std::uint8_t { automatic, mpi, nccl };

template <class Enum>
inline constexpr std::array<std::string_view, 0> words_of{};
template <>
inline constexpr std::array<std::string_view, 5> words_of<model_family>{"gpt2", "llama", "mistral", "qwen2", "qwen3"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<rope_scaling_kind>{"none", "linear", "llama3"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<stored_numbers>{"fp32", "bf16"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<data_order>{"random", "epochs"};
template <>
inline constexpr std::array<std::string_view, 5> words_of<rate_schedule>{"cosine", "linear", "constant", "wsd", "table"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<sum_integers>{"int64", "int32"};
template <>
inline constexpr std::array<std::string_view, 5> words_of<power_source>{"none", "emulated", "nvml", "cpu", "auto"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<emulation_pace>{"machine", "profile"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<compute_device>{"cpu", "cuda"};
template <>
inline constexpr std::array<std::string_view, 4> words_of<attention_kernel>{"auto", "warp", "warpgroup", "cudnn"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<transport_choice>{"auto", "mpi", "nccl"};

/// An enum that a config key can have.
template <class T>
concept ConfigWord = std::is_enum_v<T> && !words_of<T>.empty();

/// The word as the config has it.
template <ConfigWord Enum>
constexpr std::string_view name_of(Enum value)
{
    return words_of<Enum>[static_cast<std::size_t>(value)];
}

}  // namespace rheo::inline v0
