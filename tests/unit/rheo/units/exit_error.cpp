// SPDX-License-Identifier: Apache-2.0
// Exit codes: one meaning each, and the code of any exception.
#include <new>
#include <set>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(number_of(exit_code::done) == 0);
static_assert(exit_codes.front().code == exit_code::done);

TEST_CASE("exit_error: each code is listed once, in order")
{
    std::set<int> seen;
    for (auto const& [code, text] : exit_codes) {
        CHECK((seen.empty() || number_of(code) > *seen.rbegin()));
        CHECK(seen.insert(number_of(code)).second);
        CHECK_FALSE(text.empty());
    }
}

TEST_CASE("exit_error: any exception has an exit code")
{
    struct derived : exit_error {
        derived() : exit_error{exit_code::state_lost, "lost"} {}
    };
    CHECK(exit_code_of(exit_error{exit_code::usage, "what"}) == exit_code::usage);
    CHECK(exit_code_of(derived{}) == exit_code::state_lost);
    CHECK(exit_code_of(std::bad_alloc{}) == exit_code::environment);
}
