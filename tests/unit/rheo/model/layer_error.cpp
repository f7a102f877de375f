// SPDX-License-Identifier: Apache-2.0
// Each way in which an operation can misfit its layer has its sentence; every layer of the library, fused or not, has none; and what the
// sentences guard is all there is: a layer that is changed in any one number is rejected, or means another model that is as sound.
#include "rheo/model/layer_error.hpp"

#include <string>

#include "rheo/model/model.hpp"
#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape shape{.vocabulary = 64, .context = 16, .width = 24, .heads = 4, .blocks = 2};
constexpr llama_shape llama{.vocabulary = 64, .context = 16, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 40};

static_assert(error_of(block_layer(shape)).empty() && error_of(fused(block_layer(shape))).empty());
static_assert(error_of(embedding_layer(shape)).empty() && error_of(classifier_layer(shape)).empty() && error_of(fused(classifier_layer(shape))).empty());
static_assert(error_of(llama_block_layer(llama)).empty() && error_of(fused(llama_block_layer(llama))).empty());
static_assert(error_of(llama_embedding_layer(llama)).empty() && error_of(fused(llama_classifier_layer(llama))).empty());

template <class Change>
std::string fault(layer_description layer, Change const& change)
{
    change(layer);
    auto const found = error_of(layer);
    CHECK(found.size < sizeof found.letters);  // nothing is cut
    return std::string{found.view()};
}

template <class Change>
std::string of_block(Change const& change)
{
    return fault(block_layer(shape), change);
}

/// Changes the shape of a parameter.
auto with_shape(std::size_t parameter, tensor_shape to)
{
    return [=](layer_description& layer) { layer.parameters[parameter].shape = to; };
}

}  // namespace

TEST_CASE("layer_error: widths, heads and dropout of an operation")
{
    CHECK(of_block([](auto& l) { l.ops[1].in_width = 0; }) == "operation 1 (linear) is 0 -> 72 wide: both must be at least 1");
    CHECK(of_block([](auto& l) { l.ops[2].heads = 0; }) == "operation 2 (attention) has 0 heads and 0 of keys and values, which must divide them");
    CHECK(of_block([](auto& l) { l.ops[2].heads = 5; }) == "operation 2 (attention) is 24 wide, which is no multiple of its 5 heads");
    CHECK(of_block([](auto& l) { l.ops[2].kv_heads = 3; }) == "operation 2 (attention) has 4 heads and 3 of keys and values, which must divide them");
    CHECK(of_block([](auto& l) { l.ops[2].kv_heads = 2; }) == "operation 2 (attention) must take 48 columns to give 24, not 72");
    CHECK(of_block([](auto& l) { l.ops[0].in_width = 12; }) == "operation 0 (layer_norm) must take 24 columns to give 24, not 12");
    CHECK(of_block([](auto& l) { l.ops[4].dropout_per_mille = 1000; }) ==
          "operation 4 (residual_add) drops 1000 of 1000: dropout must be at least 0 and below 1");
    CHECK(fault(llama_block_layer(llama), [](auto& l) { l.ops[2].rope_base = 0; }) ==
          "operation 2 (rope) turns pairs of columns: its heads must be an even number wide, not 6, its base at least 1, not 0");
    CHECK(fault(llama_block_layer(llama), [](auto& l) { l.ops[2].scaling.factor_per_mille = 2000; }) ==
          "operation 2 (rope) turns pairs of columns: its scaling has factors but no kind");
    CHECK(fault(llama_block_layer(llama), [](auto& l) { l.ops[0].epsilon_e9 = 0; }) ==
          "operation 0 (rms_norm) has an epsilon of 0 billionths: it must be at least 1");
    auto normed = llama;
    normed.qk_norm = true;
    CHECK(fault(llama_block_layer(normed), [](auto&) {}).empty());
    CHECK(fault(llama_block_layer(normed), [](auto& l) { l.ops[2].kv_heads = 3; }) ==
          "operation 2 (qk_norm) has 4 heads and 3 of keys and values, which must divide them");
    CHECK(fault(llama_block_layer(normed), with_shape(3, {1, 7})) ==
          "operation 2 (qk_norm) uses parameter 'self_attn.k_norm.weight', which must be 1 x 6, but it is 1 x 7");
    CHECK(fault(llama_block_layer(normed), [](auto& l) {
              l.ops[2].z[0] = l.ops[2].x[0];
              l.ops[3].x[0] = l.ops[3].z[0] = l.ops[4].x[0] = l.ops[2].x[0];
          }) == "operation 2 (qk_norm) writes slot 2, which the backward needs as it was");
    CHECK(fault(llama_block_layer(llama), [](auto& l) { l.ops[8].in_width = 60; }) == "operation 8 (swiglu) must take 80 columns to give 40, not 60");
}

TEST_CASE("layer_error: slots that are read and written")
{
    CHECK(of_block([](auto& l) { l.slot_widths[2] = 8; }) == "operation 1 (linear) writes slot 2, which must be 72 columns wide, but it is 8");
    CHECK(of_block([](auto& l) { l.ops[3].x[0] = 2; }) == "operation 3 (linear) reads slot 2, which must be 24 columns wide, but it is 72");
    CHECK(of_block([](auto& l) { l.ops[3].x[0] = 11; }) == "operation 3 (linear) reads slot 11, but the layer has 11");
    CHECK(of_block([](auto& l) { l.ops[3].z[0] = -2; }) == "operation 3 (linear) writes slot -2, but the layer has 11");
    CHECK(of_block([](auto& l) { l.ops[4].x[1] = no_slot; }) == "operation 4 (residual_add) reads one slot too few");
    CHECK(of_block([](auto& l) { l.ops[7].z[1] = 9; }) == "operation 7 (gelu) writes one slot too many");
    CHECK(of_block([](auto& l) { l.slot_widths[0] = 12; }) == "slot 0 is 12 columns wide, but the layer takes 24");
    CHECK(of_block([](auto& l) { l.slot_widths[4] = 0; }) == "slot 4 is 0 columns wide, but must be at least 1");
    CHECK(of_block([](auto& l) { l.ops[0].x[0] = 5; }) == "operation 0 (layer_norm) reads slot 5, which no operation before it writes");
    CHECK(of_block([](auto& l) { l.ops[4].z[0] = 4; }) == "operation 4 (residual_add) writes slot 4, which the backward needs as it was");
    CHECK(of_block([](auto& l) { l.ops[9].z[0] = 0; }) == "operation 9 (residual_add) writes slot 0, which the backward needs as it was");
    CHECK(of_block([](auto& l) { l.output = 0; }) == "the layer's output must be a slot that an operation writes, 24 columns wide, not slot 0");
    CHECK(of_block([](auto& l) { l.output = 99; }) == "the layer's output must be a slot that an operation writes, 24 columns wide, not slot 99");
    CHECK(of_block([](auto& l) { l.ops = {}; }) == "a layer needs an operation, and slot 0 for what it takes");
}

TEST_CASE("layer_error: parameters that are used")
{
    CHECK(of_block(with_shape(2, {24, 8})) == "operation 1 (linear) uses parameter 'attn.c_attn.weight', which must be 24 x 72, but it is 24 x 8");
    CHECK(of_block(with_shape(3, {1, 24})) == "operation 1 (linear) uses parameter 'attn.c_attn.bias', which must be 1 x 72, but it is 1 x 24");
    CHECK(of_block(with_shape(0, {24, 1})) == "operation 0 (layer_norm) uses parameter 'ln_1.weight', which must be 1 x 24, but it is 24 x 1");
    CHECK(of_block([](auto& l) { l.ops[0].parameters[1] = no_parameter; }) == "operation 0 (layer_norm) needs a parameter of 1 x 24");
    CHECK(of_block([](auto& l) { l.ops[1].parameters[0] = 12; }) == "operation 1 (linear) uses parameter 12, but the layer has 12");
    CHECK(of_block([](auto& l) { l.ops[7].parameters[0] = 3; }) == "operation 7 (gelu) uses parameter 'attn.c_attn.bias', but takes none there");
    CHECK(of_block([](auto& l) { l.ops[1].parameters[1] = no_parameter; }) == "no operation uses parameter 'attn.c_attn.bias'");
    CHECK(fault(embedding_layer(shape), with_shape(1, {16, 8})) ==
          "operation 0 (embedding) uses parameter 'wpe.weight', which must be n x 24, but it is 16 x 8");
    CHECK(fault(classifier_layer(shape), with_shape(2, {24, 64})) ==
          "operation 1 (unembed) uses parameter 'wte.weight', which must be 64 x 24, but it is 24 x 64");
}

TEST_CASE("layer_error: tokens, the loss, and ids")
{
    CHECK(fault(embedding_layer(shape), [](auto& l) {
              l.in_width = 24;
              l.slot_widths[0] = 24;
          }) == "operation 0 (embedding) reads tokens: it must be the first of a layer that takes no columns");
    CHECK(fault(block_layer(shape), [](auto& l) { l.out_width = 0; }) ==
          "operation 9 (residual_add) must be a loss, as the last of a layer that gives no columns");
    CHECK(fault(classifier_layer(shape), [](auto& l) { l.out_width = 24; }) == "operation 2 (cross_entropy) must be the last of a layer that gives no columns");
    CHECK(of_block([](auto& l) { l.ops[4].id = l.ops[2].id; }) ==
          "operation 4 (residual_add) must have a greater id than the one before it: add_op numbers them, and random numbers are keyed by them");
}

TEST_CASE("layer_error: missing or overwritten gradients are found")
{
    auto const tail = [](op_kind kind, int from, int to) {
        return op{.kind = kind, .x = {from, no_slot}, .z = {to, no_slot}, .in_width = 24, .out_width = 24};
    };
    auto const with = [&](op_kind first, int first_reads, op_kind second, int second_reads, int output) {
        layer_description layer{.name = "two", .prefix = "t.#.", .in_width = 24, .out_width = 24, .output = output};
        for (int s = 0; s < 3; ++s) {
            add_slot(layer, 24);
        }
        add_op(layer, tail(first, first_reads, 1));
        add_op(layer, tail(second, second_reads, 2));
        return std::string{error_of(layer).view()};
    };
    CHECK(with(op_kind::gelu, 0, op_kind::gelu, 1, 2).empty());
    CHECK(with(op_kind::gelu, 0, op_kind::gelu, 0, 2) == "operation 0 (gelu) writes slot 1, which nothing reads: it would have no gradient");
    CHECK(with(op_kind::gelu, 0, op_kind::gelu, 1, 1) == "operation 1 (gelu) writes slot 2, which nothing reads: it would have no gradient");
    auto const shared = [](op_kind first) {  // x is read by that operation, by a gelu, and their sum is the output
        layer_description layer{.name = "shared", .prefix = "s.#.", .in_width = 24, .out_width = 24, .output = 3};
        for (int s = 0; s < 4; ++s) {
            add_slot(layer, 24);
        }
        op reader{.kind = first, .x = {0, no_slot}, .z = {1, no_slot}, .in_width = 24, .out_width = 24};
        if (first == op_kind::linear) {
            reader.parameters[0] = add_parameter(layer, {"w", {24, 24}, {0, 0.02}, true});
        }
        add_op(layer, reader);
        add_op(layer, {.kind = op_kind::gelu, .x = {0, no_slot}, .z = {2, no_slot}, .in_width = 24, .out_width = 24});
        add_op(layer, {.kind = op_kind::residual_add, .x = {1, 2}, .z = {3, no_slot}, .in_width = 24, .out_width = 24});
        return layer;
    };
    CHECK(error_of(shared(op_kind::linear)).empty());  // its part is added to the gelu's
    CHECK(fault(shared(op_kind::gelu), [](auto&) {}) ==
          "operation 0 (gelu) reads slot 0, which is read again: linear, unembed and norms can share what they read, and come before the one that cannot");
    CHECK(
        fault(shared(op_kind::linear),
              [](auto& l) {
                  l.ops[2].x[0] = 2;
                  l.ops[0].z[0] = 1;
              }) ==
        "operation 2 (residual_add) reads slot 2, which is read again: linear, unembed and norms can share what they read, and come before the one that cannot");
    CHECK(
        of_block([](auto& l) {
            l.ops[9].x[0] = 4;
            l.ops[5].x[0] = 5;
        }) ==
        "operation 4 (residual_add) reads slot 4, which is read again: linear, unembed and norms can share what they read, and come before the one that cannot");
    CHECK(fault(classifier_layer(shape), [](auto& l) {
              l.ops[0].x[0] = 1;
              l.ops[0].z[0] = 1;
          }) == "operation 0 (layer_norm) reads slot 1, which no operation before it writes");
    // The loss leaves its gradient in place of the logits, which the backward of an attention would need again.
    layer_description last{.name = "last", .prefix = "", .in_width = 72, .out_width = 0};
    add_slot(last, 72);
    add_slot(last, 24);
    add_op(last, {.kind = op_kind::attention, .x = {0, no_slot}, .z = {1, no_slot}, .in_width = 72, .out_width = 24, .heads = 4});
    add_op(last, {.kind = op_kind::cross_entropy, .x = {1, no_slot}, .in_width = 24});
    CHECK(error_of(last).view() == "operation 0 (attention) writes slot 1, where the loss leaves its gradient, but the backward needs what was there");
}

TEST_CASE("layer_error: what turns may do so in place, if none asks")
{
    auto const of_llama = [](auto change) { return fault(llama_block_layer(llama), change); };
    CHECK(of_llama([](auto&) {}).empty());
    CHECK(of_llama([](auto& l) {  // apart it is as well
              l.slot_widths.push_back(l.slot_widths[2]);
              l.ops[2].z[0] = l.ops[3].x[0] = static_cast<int>(l.slot_widths.size()) - 1;
          })
              .empty());
    std::string_view const asked = "operation 2 (rope) writes slot 2, which the backward needs as it was";
    CHECK(of_llama([](auto& l) {
              l.ops[1].kind = op_kind::linear_gelu;
              l.ops[1].z[1] = add_slot(l, l.slot_widths[2]);
          }) == asked);
    CHECK(of_llama([](auto& l) {  // a reader between the product and the rotation
              auto const rope = l.ops[2];
              auto const to = add_slot(l, rope.out_width);
              l.ops[3] = rope;
              l.ops[3].id = op_id{3};
              l.ops[2] = {.kind = op_kind::gelu, .id = rope.id, .x = rope.x, .z = {to, no_slot}, .in_width = rope.in_width, .out_width = rope.out_width};
          }) == "operation 3 (rope) writes slot 2, which the backward needs as it was");
    CHECK(fault(block_layer(shape), [](auto& l) { l.ops[7].z[0] = l.ops[7].x[0]; }).find("(gelu) writes slot") != std::string::npos);
}

TEST_CASE("layer_error: any changed field is rejected or harmless")
{
    int refused = 0;
    for (auto const& sound : {block_layer(shape), fused(block_layer(shape)), llama_block_layer(llama), classifier_layer(shape)}) {
        for (std::size_t o = 0; o < sound.ops.size(); ++o) {
            for (int field = 0; field < 8; ++field) {
                for (int const step : {-25, -1, 1, 7}) {
                    auto changed = sound;
                    auto& op = changed.ops[o];
                    int* const numbers[] = {&op.x[0], &op.x[1], &op.z[0], &op.z[1], &op.parameters[0], &op.parameters[1], &op.in_width, &op.out_width};
                    *numbers[field] += step;
                    bool const is_sound = error_of(changed).empty();
                    refused += is_sound ? 0 : 1;
                    if (is_sound) {
                        INFO("operation " << o << " field " << field << " step " << step);
                        auto const wanted = shapes_of(op);
                        for (std::size_t i = 0; i < 2; ++i) {
                            CHECK((op.x[i] == no_slot || changed.slot_widths[static_cast<std::size_t>(op.x[i])] == wanted.x[i]));
                            CHECK((op.z[i] == no_slot || changed.slot_widths[static_cast<std::size_t>(op.z[i])] == wanted.z[i]));
                            CHECK((op.parameters[i] == no_parameter ||
                                   changed.parameters[static_cast<std::size_t>(op.parameters[i])].shape == wanted.parameters[i].shape));
                        }
                    }
                }
            }
        }
    }
    CHECK(refused > 1000);
}
