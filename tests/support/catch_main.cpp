// SPDX-License-Identifier: Apache-2.0
// Compiled once for all tests; version 3 brings a main of its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
