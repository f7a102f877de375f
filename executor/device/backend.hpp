#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a rank computes with: the processor's threads, or a CUDA device. A backend has the memory that stages and state lie in, makes
// stages whose kernels are its own, and does the few things that are done with state outside of stages. Work is put into one queue, in
// which one thing comes after the other; what is put there is done when the backend is idle. On the host everything is
// done when a call returns.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/device_stream.hpp"
#include "executor/device/memory.hpp"
#include "executor/device/state_array.hpp"
#include "kernels/adamw/adamw.hpp"
#include "kernels/digest/digest.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/exact_rows/exact_rows.hpp"
#include "kernels/initialise/initialise.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

class resident_state;
class stage;

/// The update of a tensor, in the backend's own memory.
struct tensor_update {
    std::int64_t count;
    state_array* master;  ///< the parameter; in: before, out: after
    state_array* first_moment;
    state_array* second_moment;
    float const* gradient;       ///< [count], the reduced plain sum
    bfloat16* stored = nullptr;  ///< [count], what stages read, where that is not the master itself
    random_stream rounding{};    ///< of a state in bfloat16
    double weight_decay = 0;
};

class compute_backend {
public:
    compute_backend() = default;
    compute_backend(compute_backend const&) = delete;
    compute_backend& operator=(compute_backend const&) = delete;
    virtual ~compute_backend() = default;

    virtual dtype_policy policy() const = 0;
    /// What the bits of products and of the other kernels depend on: lines of the numerics fingerprint.
    virtual std::string products() const = 0;
    virtual std::string kernels() const = 0;
    /// What computes attention, where there are several to choose from and it is not the first of them; also such a line.
    virtual std::string attention() const { return {}; }
    /// The algorithms of the products of these layers, where there are several to choose from: a text; empty where there are none.
    virtual std::string choose_algorithms(std::span<layer_description const> layers, microbatch_shape shape);
    /// What kernels work in, of all that was chosen; a rank holds it besides its part.
    virtual bytes workspace_of_kernels() const { return {}; }
    /// Computes by what another rank or an earlier job has chosen. @throws exit_error when the text says no choice
    virtual void take_over_algorithms(std::string_view chosen);

    virtual memory& own() = 0;       ///< what state lies in and stages compute in
    virtual memory& messages() = 0;  ///< what messages are sent from and received into; the processor addresses it, and kernels may
    /// Both are one: nothing has to be copied for a message, or to be looked at.
    virtual bool has_one_memory() const = 0;
    /// Free memory of the device, for all ranks that share it; none where that is not known.
    virtual std::optional<bytes> free_memory() const { return std::nullopt; }

    /// What no two ranks of a host have in common unless they share their device; empty: none is a device.
    virtual std::string device_address() const { return {}; }
    /// Of the device: as many blocks of kernels run at once, of whatever size. 0: there is none.
    virtual int multiprocessors() const { return 0; }
    /// A queue for what waits for other ranks; null: there are none.
    virtual std::unique_ptr<device_stream> make_stream() { return nullptr; }

    virtual void copy(void* to, void const* from, std::size_t size) = 0;
    /// Until all that was put into the queue is done. @throws exit_error when some of it failed
    virtual void wait() = 0;
    /// For handlers of exceptions between a stage's forward and wait(): wait() then adds nothing to the losses that the forward was given.
    virtual void forget_losses() noexcept {}

    /// The stage of `layers`; see its constructor.
    virtual std::unique_ptr<stage> make_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                              resident_state& state, std::span<recompute_level const> recompute_levels = {}, shard_group const& group = {}) = 0;

    // Of state, in the backend's own memory; what is added may lie in messages.
    virtual void initialise(initialise_normal_arguments<> const& arguments) = 0;
    virtual void initialise(initialise_constant_arguments<> const& arguments) = 0;
    virtual void zero(std::span<std::int64_t> sums) = 0;
    virtual void add(exact_add_arguments const& arguments) = 0;
    virtual void convert(exact_convert_arguments const& arguments) = 0;
    // The same of sums in 32 bits.
    virtual void zero(std::span<std::int32_t> sums) = 0;
    virtual void add(exact_rows_add_arguments const& arguments) = 0;
    virtual void convert(exact_rows_convert_arguments const& arguments) = 0;
    /// What is stored of a parameter, where that is not the parameter itself.
    virtual void store(std::span<float const> parameter, std::span<bfloat16> stored) = 0;
    /// One step of many tensors; writes what is stored of each, too.
    virtual void update(std::span<tensor_update const> tensors, adamw_settings const& settings) = 0;
    /// The sums of squares of these are among those that sums_of_squares() gives next. The same bits on every backend.
    virtual void add_sums_of_squares(std::span<gradient_norm_arguments const> gradients) = 0;
    /// All that were added since the last call, in that order. Waits.
    virtual std::vector<double> sums_of_squares() = 0;
    /// The sum of the digests of all of these. Waits.
    virtual state_digest digest(std::span<digest_arguments const> all) = 0;
};

/// A copy of `count` elements of the backend's own memory from `from` on. Waits.
template <class T>
std::vector<T> copied_from(compute_backend& backend, T const* from, std::size_t count)
{
    std::vector<T> values(count);
    if (count != 0) {
        backend.copy(values.data(), from, count * sizeof(T));
        backend.wait();
    }
    return values;
}

/// What lies in the backend's memory in its storage type. Waits.
std::vector<float> floats_from(compute_backend& backend, void const* from, std::size_t count);

}  // namespace rheo::inline v0
