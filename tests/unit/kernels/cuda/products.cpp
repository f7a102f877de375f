// SPDX-License-Identifier: Apache-2.0
// On a GPU it is cuBLASLt that answers here. Without one it answers nothing (tests/unit/kernels/cublaslt): then the emulation's stand-in does.
#include "kernels/cuda/product.hpp"

#include "laws.hpp"
#include "model_products.hpp"

using namespace rheo;

TEST_CASE("cuda products: algorithms for models, none with split sums")
{
    cuda::products by;
    int all = 0, without_gelu = 0, silent = 0, others = 0, wider = 0;
    for (auto const& shape : model_products::shapes()) {
        INFO(model_products::text_of(shape));
        auto const answer = by.answer(shape);
        ++all;
        if (!answer) {
            CHECK(shape.gelu);  // for which there is a way without
            ++without_gelu;
            auto without = shape;
            without.gelu = false;
            CHECK(by.answer(without).has_value());
            continue;
        }
        CHECK(answer->workspace_bytes <= cuda::products::workspace_bytes);
        CHECK(answer->splits.value_or(1) <= 1);
        CHECK(answer->reduction.value_or(0) == 0);
        silent += answer->splits && answer->reduction ? 0 : 1;
        if (auto const aligned = by.answer(shape, 64)) {
            CHECK(aligned->workspace_bytes <= cuda::products::workspace_bytes);
            others += aligned->algorithm == answer->algorithm ? 0 : 1;
            wider += aligned->waves < answer->waves ? 1 : 0;
        }
        by.choose(shape);
    }
    CHECK(std::ssize(by.table()) >= all - without_gelu);
    WARN("cuBLASLt " << cuda::products::version() << ": " << all << " products of models; " << without_gelu << " without a GELU behind the sum, " << silent
                     << " whose algorithm does not say whether it splits sums, " << others << " with another algorithm for operands aligned to 64 bytes, "
                     << wider << " of them in fewer waves");
}
