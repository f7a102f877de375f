// SPDX-License-Identifier: Apache-2.0
// The line of progress: word by word, never wider than the terminal, with the time that is left.
#include "executor/records/progress.hpp"

#include <limits>
#include <string>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr step_record record{.step = step_id{11},
                             .of_steps = 400,
                             .attempt = {},
                             .loss = 2.34567,
                             .gradient_norm = 1.2345,
                             .learning_rate = 3e-4,
                             .tokens = 1234,
                             .duration = seconds{0.5},
                             .ranks = 5,
                             .energy = {123.45}};

}  // namespace

TEST_CASE("progress: a line says how the job goes")
{
    auto plain = record;
    plain.energy = {};
    CHECK(progress_line(plain, {200.0}) == "step 12/400  loss 2.3457  norm 1.23  lr 0.0003  2468 tokens/s  5 ranks  3 min left");
    CHECK(progress_line(record) == "step 12/400  loss 2.3457  norm 1.23  lr 0.0003  2468 tokens/s  5 ranks  123.5 J, 0.1 J/token");
    plain.model_rate = {4.15e14};
    CHECK(progress_line(plain).find("mfu") == std::string::npos);  // no description says what the devices compute
    plain.compute = {1e15};
    CHECK(progress_line(plain) == "step 12/400  loss 2.3457  norm 1.23  lr 0.0003  2468 tokens/s  mfu 41.5 %  5 ranks");
    plain.compute = {};
    plain.of_steps = 0;
    plain.ranks = 1;
    plain.skipped = true;
    plain.loss = std::numeric_limits<double>::quiet_NaN();
    CHECK(progress_line(plain) == "step 12  loss not finite  norm 1.23  lr 0.0003  2468 tokens/s  1 rank  skipped: not finite");
}

TEST_CASE("progress: a narrow terminal loses words, not their ends")
{
    for (std::size_t width = 0; width < 130; ++width) {
        auto const line = progress_line(record, {3600.0 * 3}, width);
        CHECK(line.starts_with("step 12/400  loss 2.3457"));
        CHECK((line.size() <= width || line == "step 12/400  loss 2.3457"));
        for (auto const* const part : {"  norm 1.23", "  lr 0.0003", "  2468 tokens/s", "  5 ranks", "  123.5 J, 0.1 J/token", "  3.0 h left"}) {
            auto const word = std::string{part}.substr(0, 6);
            CHECK((line.find(word) == std::string::npos || line.find(part) != std::string::npos));
        }
    }
    CHECK(progress_line(record, {3600.0 * 3}, 80) == "step 12/400  loss 2.3457  norm 1.23  2468 tokens/s  5 ranks  3.0 h left");
}

TEST_CASE("progress: the time left follows the pace of the last steps")
{
    step_pace pace;
    CHECK(pace.left(10) == seconds{});
    pace.add({2.0});
    CHECK(pace.left(10).count == Approx(20.0));
    for (int k = 0; k < 100; ++k) {
        pace.add({1.0});
    }
    CHECK(pace.left(10).count == Approx(10.0).epsilon(1e-3));
}
