// SPDX-License-Identifier: Apache-2.0
// What a device does with state outside of stages: the bits of the host, also when it does things as late as possible.
#include "executor/state/resident_state.hpp"

#include "executor/cuda/backend.hpp"
#include "executor/host/backend.hpp"
#include "late.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// A state from the seed, then one update from gradients that follow from the elements' numbers; what both leave, and the sums of squares.
struct outcome {
    state_digest made, updated;
    std::vector<double> squares;
    friend bool operator==(outcome const&, outcome const&) = default;
};

outcome made_and_updated(compute_backend& backend)
{
    auto const model = gpt_model({.vocabulary = 19, .context = 7, .width = 12, .heads = 2, .blocks = 1});
    auto const info = state_of(model);
    resident_state state{info, backend};
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, 5);
    outcome out;
    std::vector<array<float>> gradients;
    std::vector<tensor_update> all;
    std::vector<gradient_norm_arguments> norms;
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (!info.tensors[at(t)].is_parameter) {
            continue;
        }
        out.made += state.digest(t);
        auto& storage = state.tensor(t);
        auto const count = storage.parameter.size();
        array<std::int64_t> sums{backend.messages(), count};
        array<std::int64_t> more{backend.messages(), count};
        for (std::size_t i = 0; i < count; ++i) {
            sums[i] = static_cast<std::int64_t>(mix_bits(i) >> 30) - (std::int64_t{1} << 33);
            more[i] = static_cast<std::int64_t>(i) - 50;
        }
        auto& gradient = gradients.emplace_back(backend.own(), count);
        backend.add({.count = static_cast<std::int64_t>(count), .source = more.data(), .target = sums.data()});
        backend.convert({.count = static_cast<std::int64_t>(count), .sums = sums.data(), .scale_log2 = 33, .gradient = gradient.data()});
        backend.wait();
        norms.push_back({static_cast<std::int64_t>(count), gradient.data()});
        all.push_back({.count = static_cast<std::int64_t>(count),
                       .master = &storage.parameter,
                       .first_moment = &storage.first_moment,
                       .second_moment = &storage.second_moment,
                       .gradient = gradient.data(),
                       .stored = storage.stored.bfloats().data(),
                       .weight_decay = info.tensors[at(t)].decays ? 0.1 : 0.0});
    }
    backend.add_sums_of_squares({norms.data(), 1});
    backend.add_sums_of_squares(std::span{norms}.subspan(1));
    out.squares = backend.sums_of_squares();
    backend.update(all, {.gradient_multiplier = 0.25, .learning_rate = 1e-2, .step = 3});
    backend.wait();
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (!info.tensors[at(t)].is_parameter) {
            continue;
        }
        out.updated += state.digest(t);
        auto const& storage = state.tensor(t);
        auto const stored = copied_from(backend, storage.stored.bfloats().data(), storage.stored.size());
        auto const values = values_of(backend, storage).parameter;
        for (std::size_t i = 0; i < stored.size(); ++i) {
            REQUIRE(stored[i].bits() == bfloat16{values[i]}.bits());
        }
    }
    return out;
}

}  // namespace

TEST_CASE("state: device state has the bits of the host")
{
    host_backend host{1};
    auto const expected = made_and_updated(host);
    for (auto const& policy : {fp32, bf16}) {
        auto const device = cuda::make_backend(policy, 0);
        CHECK(made_and_updated(*device) == expected);
        late const as_late_as_it_may;
        CHECK(made_and_updated(*device) == expected);
    }
}

TEST_CASE("state: in bf16 it is what the definition leaves")
{
    auto const info = state_of(gpt_model({.vocabulary = 19, .context = 7, .width = 12, .heads = 2, .blocks = 1}));
    for (auto const& policy : {bf16_state, bf16_i32_state}) {
        auto const device = cuda::make_backend(policy, 0);
        CHECK(device->policy() == policy);
        late const as_late_as_it_may;
        resident_state state{info, *device};
        initialise_layers(state, layer_id{0}, layer_id{3}, 5);
        host_backend host{1};
        resident_state in_float{info, host};
        initialise_layers(in_float, layer_id{0}, layer_id{3}, 5);
        tensor_id const t{0};
        auto const count = elements(info.tensors[0].shape);
        auto& storage = state.tensor(t);
        CHECK(storage.stored.empty());
        CHECK(storage.parameter.size_bytes() == 2 * static_cast<std::size_t>(count));
        auto const drawn = values_of(*device, storage);
        std::vector<bfloat16> master, first(drawn.parameter.size(), bfloat16{0.0F}), second = first;
        for (float const value : values_of(host, in_float.tensor(t)).parameter) {
            master.emplace_back(value);
        }
        CHECK(drawn.parameter == std::vector<float>(master.begin(), master.end()));

        std::vector<float> gradient;
        for (std::int64_t i = 0; i < count; ++i) {
            gradient.push_back(static_cast<float>(i % 13) - 6.0F);
        }
        array<float> on_device{device->own(), gradient.size()};
        device->copy(on_device.data(), gradient.data(), gradient.size() * sizeof(float));
        auto const rounding = stream_of(rounding_key(9, step_id{0}, t));
        tensor_update const one{.count = count,
                                .master = &storage.parameter,
                                .first_moment = &storage.first_moment,
                                .second_moment = &storage.second_moment,
                                .gradient = on_device.data(),
                                .rounding = rounding};
        adamw_settings const settings{.learning_rate = 1e-2, .step = 1};
        device->update({&one, 1}, settings);
        device->wait();
        definition::adamw(adamw_arguments<bf16_state>{.count = count,
                                                      .master = master.data(),
                                                      .first_moment = first.data(),
                                                      .second_moment = second.data(),
                                                      .gradient = gradient.data(),
                                                      .rounding = rounding,
                                                      .settings = settings});
        auto const after = values_of(*device, storage);
        auto const expected = tensor_values{{master.begin(), master.end()}, {first.begin(), first.end()}, {second.begin(), second.end()}};
        CHECK(after.parameter == expected.parameter);
        CHECK(after.first_moment == expected.first_moment);
        CHECK(after.second_moment == expected.second_moment);
        in_float.put(t, expected);
        CHECK(state.digest(t) == in_float.digest(t));
        state.put(t, drawn);
        CHECK(values_of(*device, state.tensor(t)).parameter == drawn.parameter);
    }
}

TEST_CASE("state: received tensors are stored as after an update")
{
    auto const info = state_of(gpt_model({.vocabulary = 19, .context = 7, .width = 12, .heads = 2, .blocks = 1}));
    auto const device = cuda::make_backend(bf16, 0);
    late const as_late_as_it_may;
    resident_state state{info, *device};
    tensor_id const t{0};
    auto const count = static_cast<std::size_t>(elements(info.tensors[0].shape));
    tensor_values values{std::vector<float>(count), std::vector<float>(count, 2.0F), std::vector<float>(count, 3.0F)};
    for (std::size_t i = 0; i < count; ++i) {
        values.parameter[i] = 1.0F / static_cast<float>(i + 3);
    }
    auto const check = [&] {
        auto const& held = state.tensor(t);
        CHECK(values_of(*device, held).parameter == values.parameter);
        CHECK(values_of(*device, held).second_moment == values.second_moment);
        auto const stored = copied_from(*device, held.stored.bfloats().data(), held.stored.size());
        REQUIRE(stored.size() == count);
        for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(stored[i].bits() == bfloat16{values.parameter[i]}.bits());
        }
    };
    state.put(t, values);
    check();
    auto& where = device->messages();
    tensor_storage arrived{state_array{where, count}, state_array{where, count}, state_array{where, count}, state_array{where, dtype::bf16}};
    values.parameter[1] = 77.0F;
    std::copy(values.parameter.begin(), values.parameter.end(), arrived.parameter.floats().begin());
    std::copy(values.first_moment.begin(), values.first_moment.end(), arrived.first_moment.floats().begin());
    std::copy(values.second_moment.begin(), values.second_moment.end(), arrived.second_moment.floats().begin());
    state.put(t, std::move(arrived));
    check();
}

TEST_CASE("state: who keeps no master has what stages read")
{
    auto const info = state_of(gpt_model({.vocabulary = 19, .context = 7, .width = 12, .heads = 2, .blocks = 1}));
    auto const device = cuda::make_backend(bf16, 0);
    late const as_late_as_it_may;
    tensor_id const t{0};
    resident_state keeper{info, *device};
    initialise(keeper, t, 5);
    auto const expected = values_of(*device, keeper.tensor(t)).parameter;
    auto const read = [&](resident_state& state) {
        auto const values = state.read_by_stages(t).bfloats();
        return copied_from(*device, values.data(), values.size());
    };
    auto const same = [&](resident_state& state) {
        auto const stored = read(state);
        REQUIRE(stored.size() == expected.size());
        for (std::size_t i = 0; i < stored.size(); ++i) {
            REQUIRE(stored[i].bits() == bfloat16{expected[i]}.bits());
        }
    };
    resident_state holder{info, *device};
    auto copy = empty_storage(device->own(), dtype::f32);
    copy.stored.resize(expected.size());
    device->copy(copy.stored.data(), keeper.tensor(t).stored.data(), copy.stored.size_bytes());
    holder.put(t, std::move(copy), committed_roles::copy);
    CHECK(holder.holds(t));
    CHECK_FALSE(holder.keeps(t));
    CHECK(holder.tensor(t).parameter.empty());
    same(holder);
    SECTION("and becomes a keeper")
    {
        auto optimizer = empty_storage(device->own(), dtype::f32);
        for (auto* const values : {&optimizer.parameter, &optimizer.first_moment, &optimizer.second_moment}) {
            values->resize(expected.size());
        }
        device->copy(optimizer.parameter.data(), keeper.tensor(t).parameter.data(), optimizer.parameter.size_bytes());
        holder.put(t, std::move(optimizer), committed_roles::optimizer);
        CHECK(holder.keeps(t));
        CHECK(holder.digest(t) == keeper.digest(t));
        same(holder);
    }
    SECTION("and is made of a keeper")
    {
        keeper.drop_optimizer_part(t);
        CHECK(keeper.holds(t));
        CHECK_FALSE(keeper.keeps(t));
        CHECK(keeper.tensor(t).parameter.empty());
        same(keeper);
    }
}
