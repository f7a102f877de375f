// SPDX-License-Identifier: Apache-2.0
#include "executor/state/resident_state.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <utility>

#include <range/v3/view/zip.hpp>

#include "kernels/digest/digest.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/model/state.hpp"

namespace rheo::inline v0 {

namespace {

/// The scale of the first attempt, which is always redone with the scales that its own maxima ask for.
constexpr int first_scale_log2 = 24;

/// Rows keep the first scale until something reaches them, a token's row for many steps perhaps: it is the one after a contribution of this size, so that
/// the first real one seldom overflows and is not lost in the rounding either.
constexpr float first_largest = 0x1p-4F;

}  // namespace

tensor_values values_of(compute_backend& backend, tensor_storage const& storage)
{
    auto const copy = [&](state_array const& from) {
        return from.type() == dtype::bf16 ? floats_from(backend, from.data(), from.size()) : copied_from(backend, from.floats().data(), from.size());
    };
    return {copy(storage.parameter), copy(storage.first_moment), copy(storage.second_moment)};
}

tensor_storage empty_storage(memory& where, dtype type)
{
    return {state_array{where, type}, state_array{where, type}, state_array{where, type}, state_array{where, dtype::bf16}};
}

tensor_storage& resident_state::add(tensor_id t)
{
    auto const count = static_cast<std::size_t>(elements(info(t).shape));
    auto& where = backend_->own();
    auto& entry = tensors_[at(t)];
    entry = std::make_unique<tensor_storage>(empty_storage(where, backend_->policy().master));
    for (auto* const values : {&entry->parameter, &entry->first_moment, &entry->second_moment}) {
        values->resize(count);
    }
    if (stores_apart()) {
        entry->stored.resize(count);
    }
    return *entry;
}

void resident_state::put(tensor_id t, tensor_values const& values)
{
    auto& storage = add(t);
    std::deque<std::vector<bfloat16>> rounded;  // live until they are copied
    auto const fill = [&](state_array& to, std::vector<float> const& from) {
        expects(from.size() == to.size(), "the values of a tensor have its shape");
        if (to.type() == dtype::bf16) {
            auto const& nearest = rounded.emplace_back(from.begin(), from.end());
            backend_->copy(to.data(), nearest.data(), to.size_bytes());
        } else {
            backend_->copy(to.data(), from.data(), to.size_bytes());
        }
    };
    fill(storage.parameter, values.parameter);
    fill(storage.first_moment, values.first_moment);
    fill(storage.second_moment, values.second_moment);
    stored(t);
    backend_->wait();
}

void resident_state::put(tensor_id t, tensor_storage&& arrived, committed_roles roles)
{
    auto& where = backend_->own();
    auto& entry = tensors_[at(t)];
    if (entry == nullptr) {
        entry = std::make_unique<tensor_storage>(empty_storage(where, backend_->policy().master));
    }
    if (has_role(roles, tensor_role::second_moment)) {
        entry->first_moment = std::move(arrived.first_moment);
        entry->second_moment = std::move(arrived.second_moment);
    }
    if (roles == committed_roles::copy) {
        entry->stored = std::move(arrived.stored);
    } else if (has_role(roles, tensor_role::parameter)) {
        entry->parameter = std::move(arrived.parameter);
    }
    if (roles == committed_roles::all && stores_apart()) {
        entry->stored.resize(entry->parameter.size());
        stored(t);
        backend_->wait();
    }
}

void resident_state::drop_optimizer_part(tensor_id t)
{
    if (auto& entry = tensors_[at(t)]; entry != nullptr) {
        entry->first_moment.resize(0);
        entry->second_moment.resize(0);
        if (stores_apart()) {
            entry->parameter.resize(0);
        }
        if (!holds(t)) {
            entry = nullptr;
        }
    }
}

void resident_state::stored(tensor_id t)
{
    if (auto& storage = tensor(t); !storage.stored.empty()) {
        backend_->store(storage.parameter.floats(), storage.stored.bfloats());
    }
}

gradient_accumulator& resident_state::accumulator(use_id use)
{
    auto& entry = accumulators_[at(use)];
    if (entry == nullptr) {
        auto const t = info_->uses[at(use)].tensor;
        auto const count = static_cast<std::size_t>(elements(info(t).shape));
        bool const in_rows = sums_in_rows(info(t));
        auto& where = info(t).is_parameter ? backend_->own() : backend_->messages();
        entry.reset(
            new gradient_accumulator{{where, in_rows ? 0 : count}, {where, in_rows ? count : 0}, {where, in_rows ? scales_of(t).size() : 0}, states_[at(use)]});
        row_states sources;
        begin(*entry, t, sources);
        backend_->wait();
    }
    return *entry;
}

/// The states of sums that are zero. Those of rows are copied from `sources` until the backend has been waited for.
void resident_state::begin(gradient_accumulator& sums, tensor_id t, row_states& sources)
{
    auto const of = scales_of(t);
    sums.state = {.scale_log2 = sums.rows.empty() ? of.front() : 0};
    if (!sums.rows.empty()) {
        auto& rows = sources.emplace_back();
        for (auto const scale : of) {
            rows.push_back({.scale_log2 = scale});
        }
        backend_->copy(sums.rows.data(), rows.data(), rows.size() * sizeof(row_sum_state));
    }
}

bytes resident_state::accumulator_size(tensor_id t) const
{
    return parameter_bytes_of(info(t).shape, sums_in_rows(info(t)) ? backend_->policy() : fp32).accumulators;
}

void resident_state::begin_scales(int microbatches)
{
    for (tensor_id t{0}; at(t) < info_->tensors.size(); ++t) {
        auto const first = sums_in_rows(info(t)) ? next_row_scale(first_largest, contributions(t, microbatches), 0) : first_scale_log2;
        std::fill_n(scales.begin() + static_cast<std::ptrdiff_t>(first_scale(t)), scales_of(t).size(), first);
    }
}

void resident_state::choose_scales(std::span<float const> largest, int microbatches)
{
    for (tensor_id t{0}; at(t) < info_->tensors.size(); ++t) {
        auto const each = contributions(t, microbatches);
        for (auto i = first_scale(t); i < first_scale_[at(t) + 1]; ++i) {
            scales[i] = sums_in_rows(info(t)) ? next_row_scale(largest[i], each, scales[i]) : next_scale(largest[i], each, scales[i]);
        }
    }
}

void resident_state::merge(use_id use, gradient_accumulator const& arrived)
{
    auto& target = accumulator(use);
    auto const t = info_->uses[at(use)].tensor;
    if (sums_in_rows(info(t))) {
        backend_->add(exact_rows_add_arguments{.rows = info(t).shape.rows,
                                               .source = arrived.sums_in_32.data(),
                                               .source_states = arrived.rows.data(),
                                               .target = {.sums = target.sums_in_32.data(), .states = target.rows.data(), .width = info(t).shape.columns}});
    } else {
        backend_->add(exact_add_arguments{.count = static_cast<std::int64_t>(target.sums.size()), .source = arrived.sums.data(), .target = target.sums.data()});
    }
    target.state = joined(target.state, arrived.state);
    if (target.not_finite_at.value < 0) {
        target.not_finite_at = arrived.not_finite_at;
    }
}

std::vector<std::span<row_sum_state const>> resident_state::rows_of_all()
{
    std::size_t count = 0;
    for (auto const& entry : accumulators_) {
        count += entry == nullptr ? 0 : entry->rows.size();
    }
    if (!backend_->has_one_memory() && fetched_rows_.size() < count) {
        fetched_rows_.resize(count);
    }
    std::vector<std::span<row_sum_state const>> all;
    auto* next = fetched_rows_.data();
    for (auto const& entry : accumulators_) {
        auto const rows = entry == nullptr ? 0 : entry->rows.size();
        auto const* from = rows == 0 ? nullptr : entry->rows.data();
        if (rows > 0 && !backend_->has_one_memory()) {
            backend_->copy(next, from, rows * sizeof(row_sum_state));
            from = next;
            next += rows;
        }
        all.emplace_back(from, rows);
    }
    backend_->wait();
    return all;
}

void resident_state::clear_accumulators()
{
    for (auto const& entry : accumulators_) {
        if (entry != nullptr) {
            backend_->zero(std::span{entry->sums.data(), entry->sums.size()});
            backend_->zero(std::span{entry->sums_in_32.data(), entry->sums_in_32.size()});
        }
    }
    backend_->wait();  // the processor writes where kernels do
    row_states sources;
    for (auto&& [entry, use] : ranges::views::zip(accumulators_, info_->uses)) {
        if (entry != nullptr) {
            begin(*entry, use.tensor, sources);
            entry->not_finite_at = microbatch_id{-1};
        }
    }
    backend_->wait();
}

state_digest resident_state::digest(tensor_id t) const
{
    auto const& storage = tensor(t);
    std::vector<digest_arguments> all;
    auto const add = [&](tensor_role role, state_array const& values) {
        for (auto const& where : strided_runs_of(info(t))) {
            if (!values.empty()) {
                all.push_back({.key = digest_key(parameter_name(info(t)), role), .where = where, .values = values.data(), .type = values.type()});
            }
        }
    };
    add(tensor_role::parameter, storage.parameter);
    add(tensor_role::first_moment, storage.first_moment);
    add(tensor_role::second_moment, storage.second_moment);
    return backend_->digest(all);
}

state_digest digest_of_scales(std::string_view tensor, std::span<int const> scales)
{
    std::vector<std::uint32_t> bits;
    for (auto const scale : scales) {
        bits.push_back(std::bit_cast<std::uint32_t>(scale));
    }
    return digest_of(tensor, tensor_role::accumulator, 0, std::span{std::as_const(bits)});
}

void initialise(resident_state& state, tensor_id t, std::uint64_t seed)
{
    auto& storage = state.add(t);
    auto const& info = state.info(t);
    auto const& initial = info.initial;
    auto& backend = state.backend();
    bool const rounds = storage.parameter.type() == dtype::bf16;
    array<float> drawn{backend.own(), rounds ? storage.parameter.size() : 0};
    auto* const values = rounds ? drawn.data() : storage.parameter.floats().data();
    if (initial.deviation == 0) {
        backend.initialise(
            initialise_constant_arguments<>{.count = static_cast<std::int64_t>(storage.parameter.size()), .value = initial.mean, .values = values});
    } else {
        for_each_run(info, [&](element_run const& run) {
            backend.initialise(initialise_normal_arguments<>{.seed = seed,
                                                             .tensor = info.part.parameter.empty() ? t : info.part.number,
                                                             .first = run.in_parameter,
                                                             .count = run.count,
                                                             .mean = initial.mean,
                                                             .deviation = initial.deviation,
                                                             .values = values + run.own});
        });
    }
    if (rounds) {
        backend.store({drawn.data(), drawn.size()}, storage.parameter.bfloats());
        backend.wait();  // before what was drawn is given back
    }
    state.stored(t);
}

void initialise_layers(resident_state& state, layer_id first, layer_id last, std::uint64_t seed)
{
    for (auto const t : tensors_of(state.info(), first, last)) {
        if (state.info().tensors[at(t)].is_parameter) {
            initialise(state, t, seed);
        }
    }
    state.backend().wait();
}

}  // namespace rheo::inline v0
