// SPDX-License-Identifier: Apache-2.0
#include "rheo/recover/outcome.hpp"

using namespace rheo;

static_assert(outcome_of({}, when_not_finite::end) == outcome::commit);
static_assert(outcome_of({.overflow = true, .stop_requested = true}, when_not_finite::end) == outcome::redo);
static_assert(outcome_of({.stop_requested = true}, when_not_finite::end) == outcome::stop);
static_assert(outcome_of({.not_finite = true, .overflow = true}, when_not_finite::end) == outcome::error);
static_assert(outcome_of({.not_finite = true, .overflow = true, .stop_requested = true}, when_not_finite::skip_step) == outcome::skip);
static_assert(outcome_of({.data_changed = true, .not_finite = true, .overflow = true, .stop_requested = true}, when_not_finite::skip_step) ==
              outcome::bad_data);

static_assert(exit_code(leave_reason::finished) == 0);
static_assert(exit_code(leave_reason::no_plan) == 75);
static_assert(exit_code(leave_reason::state_lost) == 6);
static_assert(exit_code(leave_reason::not_finite) == 7);
static_assert(exit_code(leave_reason::bad_data) == 4);
static_assert(exit_code(leave_reason::stopped) == 75);
