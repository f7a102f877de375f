// SPDX-License-Identifier: Apache-2.0
#include "executor/config/inject.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include <signal.h>
#include <unistd.h>

#include <range/v3/view/enumerate.hpp>

#include "rheo/units/nearest_name.hpp"

namespace rheo::inline v0 {

namespace {

template <class Number>
bool read_number(std::string_view& text, Number& value)
{
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool skip(std::string_view& text, std::string_view prefix)
{
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

/// Reads what follows `from` in `slow:rank@from-to:factor`.
bool read_slowness(std::string_view text, injected_fault& fault)
{
    return skip(text, "-") && read_number(text, fault.until.value) && skip(text, ":") && read_number(text, fault.factor) && text.empty() &&
           fault.until >= fault.step && fault.factor >= 1.0 && fault.factor <= 1000.0;
}

void strike(injected_fault const& fault, attempt_id attempt, std::string_view where)
{
    static constexpr char const* done[] = {"ends itself", "stops itself", "hangs"};
    // One write of one line: nothing of it is left in a buffer, and lines of several ranks do not mix.
    char line[128];
    auto const length = std::snprintf(line, sizeof line, "rheo: rank %d %s in step %lld, attempt %d, at '%s'\n", fault.rank.value,
                                      done[static_cast<std::size_t>(fault.kind)], static_cast<long long>(fault.step.value), attempt.value, where.data());
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
    if (fault.kind != fault_kind::hang) {
        kill(getpid(), fault.kind == fault_kind::kill ? SIGKILL : SIGSTOP);
        return;
    }
    for (;;) {
        pause();
    }
}

}  // namespace

result<injected_fault> parse_fault(std::string_view text)
{
    auto const refused = [whole = std::string{text}](std::string const& why) { return failure{"the fault '" + whole + "' " + why}; };
    injected_fault parsed{{}, {}, fault_phase::forward, {}};
    for (std::size_t i = 1; i < std::size(fault_kind_names); ++i) {
        if (text.starts_with(fault_kind_names[i])) {
            parsed.kind = static_cast<fault_kind>(i);
        }
    }
    if (!skip(text, fault_kind_names[static_cast<std::size_t>(parsed.kind)]) || !skip(text, ":") || !read_number(text, parsed.rank.value) || !skip(text, "@") ||
        !read_number(text, parsed.step.value)) {
        return refused("is not of the form kill:rank@step[:phase]");
    }
    if (parsed.kind == fault_kind::slow) {
        if (!read_slowness(text, parsed)) {
            return refused("is not of the form slow:rank@from-to:factor, with a factor from 1 to 1000");
        }
        return parsed;
    }
    if (skip(text, ".") && !read_number(text, parsed.attempt.emplace().value)) {
        return refused("is not of the form kill:rank@step[.attempt][:phase]");
    }
    if (text.empty()) {
        return parsed;
    }
    if (parsed.kind == fault_kind::drain) {
        return refused("is not of the form drain:rank@step: a rank leaves between two steps");
    }
    if (!skip(text, ":")) {
        return refused("is not of the form kill:rank@step[:phase]");
    }
    for (auto const& [i, name] : ranges::views::enumerate(fault_phase_names)) {
        if (text == name) {
            parsed.phase = static_cast<fault_phase>(i);
            return parsed;
        }
    }
    for (auto const& [i, name] : ranges::views::enumerate(checkpoint_point_names)) {
        if (text == name) {
            parsed.writing = static_cast<checkpoint_point>(i);
            return parsed;
        }
    }
    std::vector<std::string_view> known(std::begin(fault_phase_names), std::end(fault_phase_names));
    known.insert(known.end(), std::begin(checkpoint_point_names), std::end(checkpoint_point_names));
    return refused("names no phase of a step; the nearest is '" + std::string{nearest_name(text, known)} + "'");
}

void fault_injector::at(fault_phase phase, step_id step, attempt_id attempt) const
{
    for (auto const& fault : faults_) {
        if (fault.kind < fault_kind::drain && fault.rank == self_ && fault.step == step && !fault.writing && fault.phase == phase &&
            fault.attempt.value_or(attempt) == attempt) {
            strike(fault, attempt, fault_phase_names[static_cast<std::size_t>(phase)]);
        }
    }
}

bool fault_injector::leaves(step_id step) const
{
    return std::any_of(faults_.begin(), faults_.end(),
                       [&](injected_fault const& f) { return f.kind == fault_kind::drain && f.rank == self_ && f.step <= step; });
}

double fault_injector::slowness(step_id step) const
{
    double factor = 1.0;
    for (auto const& fault : faults_) {
        if (fault.kind == fault_kind::slow && fault.rank == self_ && fault.step <= step && step <= fault.until) {
            factor = std::max(factor, fault.factor);
        }
    }
    return factor;
}

void fault_injector::at(checkpoint_point point, step_id of_checkpoint) const
{
    for (auto const& fault : faults_) {
        if (fault.rank == self_ && fault.step == of_checkpoint && fault.writing == point) {
            strike(fault, attempt_id{0}, checkpoint_point_names[static_cast<std::size_t>(point)]);
        }
    }
}

}  // namespace rheo::inline v0
