// SPDX-License-Identifier: Apache-2.0
#include "rheo/recover/outcome.hpp"
#include "rheo/units/exit_code.hpp"

using namespace rheo;

static_assert(outcome_of({}, when_not_finite::end) == outcome::commit);
static_assert(outcome_of({.overflow = true, .stop_requested = true}, when_not_finite::end) == outcome::redo);
static_assert(outcome_of({.stop_requested = true}, when_not_finite::end) == outcome::stop);
static_assert(outcome_of({.not_finite = true, .overflow = true}, when_not_finite::end) == outcome::error);
static_assert(outcome_of({.not_finite = true, .overflow = true, .stop_requested = true}, when_not_finite::skip_step) == outcome::skip);
static_assert(outcome_of({.data_changed = true, .not_finite = true, .overflow = true, .stop_requested = true}, when_not_finite::skip_step) ==
              outcome::bad_data);

static_assert(exit_code_of(leave_reason::finished) == exit_code::done);
static_assert(exit_code_of(leave_reason::no_plan) == exit_code::stopped);
static_assert(exit_code_of(leave_reason::state_lost) == exit_code::state_lost);
static_assert(exit_code_of(leave_reason::not_finite) == exit_code::not_finite);
static_assert(exit_code_of(leave_reason::bad_data) == exit_code::bad_data);
static_assert(exit_code_of(leave_reason::stopped) == exit_code::stopped);
