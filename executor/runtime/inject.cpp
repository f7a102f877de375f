// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject.hpp"

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include <signal.h>
#include <unistd.h>

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

}  // namespace

parsed_fault parse_fault(std::string_view text)
{
    auto const refused = [whole = std::string{text}](std::string const& why) {
        return parsed_fault{std::nullopt, "the fault '" + whole + "' " + why};
    };
    fault result{{}, {}, fault_phase::forward, {}};
    for (std::size_t i = 1; i < std::size(fault_kind_names); ++i) {
        if (text.starts_with(fault_kind_names[i])) {
            result.kind = static_cast<fault_kind>(i);
        }
    }
    if (!skip(text, fault_kind_names[static_cast<std::size_t>(result.kind)]) || !skip(text, ":") || !read_number(text, result.rank.value) || !skip(text, "@") || !read_number(text, result.step.value)) {
        return refused("is not of the form kill:rank@step[:phase]");
    }
    if (skip(text, ".") && !read_number(text, result.attempt.emplace().value)) {
        return refused("is not of the form kill:rank@step[.attempt][:phase]");
    }
    if (text.empty()) {
        return {result, {}};
    }
    if (!skip(text, ":")) {
        return refused("is not of the form kill:rank@step[:phase]");
    }
    for (std::size_t i = 0; i < std::size(fault_phase_names); ++i) {
        if (text == fault_phase_names[i]) {
            result.phase = static_cast<fault_phase>(i);
            return {result, {}};
        }
    }
    return refused("names no phase of a step; the nearest is '" + std::string{nearest_name(text, fault_phase_names)} + "'");
}

void fault_injector::at(fault_phase phase, step_id step, attempt_id attempt) const
{
    for (auto const& fault : faults_) {
        if (fault.rank == me_ && fault.step == step && fault.phase == phase && fault.attempt.value_or(attempt) == attempt) {
            static constexpr char const* done[] = {"ends itself", "stops itself", "hangs"};
            // One write of one line: nothing of it is left in a buffer, and lines of several ranks do not mix.
            char line[128];
            auto const length = std::snprintf(line, sizeof line, "rheo: rank %d %s in step %lld, attempt %d, at '%s'\n", me_.value,
                                              done[static_cast<std::size_t>(fault.kind)], static_cast<long long>(step.value), attempt.value,
                                              std::data(fault_phase_names[static_cast<std::size_t>(phase)]));
            [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
            if (fault.kind != fault_kind::hang) {
                kill(getpid(), fault.kind == fault_kind::kill ? SIGKILL : SIGSTOP);
                return;
            }
            for (;;) {
                pause();
            }
        }
    }
}

}  // namespace rheo::inline v0
