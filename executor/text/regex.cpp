// SPDX-License-Identifier: Apache-2.0
#include "executor/text/regex.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

std::string message_of(int error)
{
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return reinterpret_cast<char const*>(text.data());
}

/// What a thread needs to match, whatever the pattern.
struct match_memory {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);  // the whole match, no groups
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr);

    match_memory()
    {
        if (data == nullptr || context == nullptr) {
            throw std::bad_alloc{};
        }
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
    ~match_memory()
    {
        pcre2_match_data_free(data);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
    match_memory(match_memory const&) = delete;
    match_memory& operator=(match_memory const&) = delete;
};

std::uint32_t number_of(pcre2_code const* code, std::uint32_t which)
{
    std::uint32_t value = 0;
    pcre2_pattern_info(code, which, &value);
    return value;
}

}  // namespace

struct regex::code {
    pcre2_code* pointer = nullptr;
    bool compiled = false;  ///< to machine code

    explicit code(pcre2_code* made) : pointer{made} {}
    ~code() { pcre2_code_free(pointer); }
    code(code const&) = delete;
    code& operator=(code const&) = delete;
};

regex::regex(std::string const& pattern) : pattern_{pattern}
{
    if (first_invalid(pattern) != pattern.size()) {
        throw json_error{"has a regular expression that is not UTF-8"};
    }
    auto const text = translate_regex(pattern);
    int error = 0;
    std::size_t at = 0;
    auto* const made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (made == nullptr) {
        throw json_error{fmt::format("has the regular expression '{}', which is invalid: {}, at byte {} of '{}'", pattern, message_of(error), at, text)};
    }
    auto const owner = std::make_shared<code>(made);
    if (number_of(made, PCRE2_INFO_MATCHEMPTY) != 0) {
        throw json_error{fmt::format("has the regular expression '{}', which can match nothing: splits at such matches are not supported", pattern)};
    }
    looks_only_ahead_ = number_of(made, PCRE2_INFO_MAXLOOKBEHIND) == 0;
    owner->compiled = pcre2_jit_compile(made, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;  // where the machine forbids it, it is interpreted
    code_ = owner;
}

regex::match regex::find(std::string_view text, std::size_t from, bool open) const
{
    thread_local match_memory memory;
    std::uint32_t const partial = open ? PCRE2_PARTIAL_HARD : 0U;
    // Steps back grow with a run of white space; patterns that take exponentially many are refused.
    pcre2_set_match_limit(memory.context, static_cast<std::uint32_t>(std::min<std::size_t>(10'000'000 + 64 * (text.size() - from), UINT32_MAX)));
    auto const* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    auto const found = code_->compiled ? pcre2_jit_match(code_->pointer, subject, text.size(), from, partial, memory.data, memory.context)
                                       : pcre2_match(code_->pointer, subject, text.size(), from, partial | PCRE2_NO_UTF_CHECK, memory.data, memory.context);
    auto const* const ends = pcre2_get_ovector_pointer(memory.data);
    if (found >= 0) {
        return {status::found, ends[0], ends[1]};
    }
    if (found == PCRE2_ERROR_PARTIAL) {
        return {status::undecided, ends[0], text.size()};
    }
    if (found == PCRE2_ERROR_NOMATCH) {
        return {open ? status::undecided : status::none, text.size(), text.size()};
    }
    throw exit_error{exit_code::bad_data, fmt::format("tokenizer: the regular expression '{}' cannot be matched here: {}", pattern_, message_of(found))};
}

}  // namespace rheo::inline v0
