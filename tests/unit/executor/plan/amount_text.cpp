// SPDX-License-Identifier: Apache-2.0
// Amounts for people: the unit that suits them.
#include "executor/plan/amount_text.hpp"

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("amount_text: counts have the unit that suits them")
{
    CHECK(count_text(0) == "0");
    CHECK(count_text(9999) == "9999");
    CHECK(count_text(45'123) == "45.1 k");
    CHECK(count_text(1'814'800) == "1814.8 k");
    CHECK(count_text(124'400'000) == "124.40 M");
    CHECK(count_text(2'780'000'000) == "2.78 G");
}

TEST_CASE("amount_text: times that are rough have no false digits")
{
    CHECK(rough_time_text(0.4) == "0 s");
    CHECK(rough_time_text(99.0) == "99 s");
    CHECK(rough_time_text(100.0) == "2 min");
    CHECK(rough_time_text(3600.0 * 30) == "30.0 h");
    CHECK(rough_time_text(86400.0 * 12) == "12.0 d");
}
