// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt itself says without a device: whether it takes the descriptions of our products and of what is wanted of their algorithms.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "../cuda/model_products.hpp"
#include "kernels/cuda/error.hpp"
#include "kernels/cuda/product.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct library_is_there {
    library_is_there()
    {
        try {
            cuda::products::version();
        } catch (std::runtime_error const& error) {
            std::printf("skipped: this test needs cuBLASLt (%s)\n", error.what());
            std::exit(77);
        }
    }
} const library;

}  // namespace

TEST_CASE("cublaslt descriptions: the library takes those of models")
{
    int taken = 0;
    for (auto const& shape : model_products::shapes()) {
        INFO(model_products::text_of(shape));
        CHECK_NOTHROW(cuda::products::describe(shape));
        ++taken;
    }
    CHECK(taken > 300);
    WARN("cuBLASLt " << cuda::products::version() << " takes the descriptions of " << taken << " products");
}

TEST_CASE("cublaslt descriptions: without a device, no algorithms")
{
    try {
        cuda::products by;
        WARN("there is a device: kernels.gpu.products asks for algorithms");
    } catch (cuda::error const& error) {
        INFO(error.what());
        CHECK(std::string{error.what()}.find("cublasLtCreate failed: ") == 0);
        WARN("no algorithm was asked for: " << error.what());
    }
}
