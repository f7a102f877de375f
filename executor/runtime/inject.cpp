// SPDX-License-Identifier: Apache-2.0
#include "runtime/inject.hpp"

#include <charconv>
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
    fault result{{}, {}, fault_phase::forward};
    if (!skip(text, "kill:") || !read_number(text, result.rank.value) || !skip(text, "@") || !read_number(text, result.step.value)) {
        return refused("is not of the form kill:rank@step[:phase]");
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

void fault_injector::at(fault_phase phase, step_id step) const
{
    for (auto const& fault : faults_) {
        if (fault == rheo::fault{me_, step, phase}) {
            kill(getpid(), SIGKILL);
        }
    }
}

}  // namespace rheo::inline v0
