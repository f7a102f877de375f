// SPDX-License-Identifier: Apache-2.0
#include "executor/text/pre_tokenizer.hpp"

#include <algorithm>

#include <utf8proc.h>

#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

struct stretch {
    std::size_t begin;
    std::size_t end;
    bool found;
};

/// The matches of a pattern and what is between them, the whole text.
std::vector<stretch> stretches_of(regex const& pattern, std::string_view text)
{
    std::vector<stretch> all;
    std::size_t at = 0;
    for (auto match = pattern.find(text, 0); match.is == regex::status::found; match = pattern.find(text, at)) {
        if (match.begin > at) {
            all.push_back({at, match.begin, false});
        }
        all.push_back({match.begin, match.end, true});
        at = match.end;
    }
    if (at < text.size()) {
        all.push_back({at, text.size(), false});
    }
    return all;
}

std::vector<stretch> stretches_of(std::string_view pattern, std::string_view text)
{
    std::vector<stretch> all;
    std::size_t at = 0;
    for (auto found = text.find(pattern); found != std::string_view::npos; found = text.find(pattern, at)) {
        if (found > at) {
            all.push_back({at, found, false});
        }
        at = found + pattern.size();
        all.push_back({found, at, true});
    }
    if (at < text.size()) {
        all.push_back({at, text.size(), false});
    }
    return all;
}

/// Each character for which `is` holds is a stretch of its own.
template <class Is>
std::vector<stretch> stretches_where(std::string_view text, Is is)
{
    std::vector<stretch> all;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        auto const here = utf8_at(text, at);
        if (is(here.code)) {
            if (at > begin) {
                all.push_back({begin, at, false});
            }
            all.push_back({at, at + here.bytes, true});
            begin = at + here.bytes;
        }
        at += here.bytes;
    }
    if (begin < text.size()) {
        all.push_back({begin, text.size(), false});
    }
    return all;
}

/// Joins stretches as the behavior has it, and leaves out what it removes.
void apply(split_behavior behavior, std::vector<stretch>& all)
{
    switch (behavior) {
    case split_behavior::isolated: return;
    case split_behavior::removed: std::erase_if(all, [](stretch const& s) { return s.found; }); return;
    default: break;
    }
    auto const from_the_end = behavior == split_behavior::merged_with_next;
    if (from_the_end) {
        std::reverse(all.begin(), all.end());
    }
    std::vector<stretch> joined;
    bool before = false;  // whether the one before was found
    for (auto const& one : all) {
        auto const joins = behavior == split_behavior::contiguous ? one.found == before : one.found && !before;
        if (joins && !joined.empty()) {
            joined.back().begin = std::min(joined.back().begin, one.begin);
            joined.back().end = std::max(joined.back().end, one.end);
        } else {
            joined.push_back(one);
        }
        before = one.found;
    }
    if (from_the_end) {
        std::reverse(joined.begin(), joined.end());
    }
    all = std::move(joined);
}

bool is_digit(char32_t code)  // Rust's char::is_numeric
{
    auto const category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code)
{
    if (code < 0x80) {
        return (code >= 0x21 && code <= 0x2f) || (code >= 0x3a && code <= 0x40) || (code >= 0x5b && code <= 0x60) || (code >= 0x7b && code <= 0x7e);
    }
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return true;
    default: return false;
    }
}

void invert(std::vector<stretch>& all, bool wanted)
{
    if (wanted) {
        for (auto& one : all) {
            one.found = !one.found;
        }
    }
}

std::vector<stretch> split_one(split_by_regex const& step, std::string_view text)
{
    auto all = stretches_of(step.pattern, text);
    invert(all, step.invert);
    apply(step.behavior, all);
    return all;
}

std::vector<stretch> split_one(split_by_text const& step, std::string_view text)
{
    auto all = stretches_of(std::string_view{step.pattern}, text);
    invert(all, step.invert);
    apply(step.behavior, all);
    return all;
}

std::vector<stretch> split_one(split_digits step, std::string_view text)
{
    std::vector<stretch> all;
    digit_runs(step, text, [&](std::size_t begin, std::size_t end) { all.push_back({begin, end, false}); });
    return all;
}

std::vector<stretch> split_one(split_punctuation step, std::string_view text)
{
    auto all = stretches_where(text, is_punctuation);
    apply(step.behavior, all);
    return all;
}

std::vector<stretch> split_one(split_white_space, std::string_view text)
{
    auto all = stretches_where(text, is_white_space);
    apply(split_behavior::removed, all);
    return all;
}

}  // namespace

void digit_runs(split_digits step, std::string_view text, std::function<void(std::size_t, std::size_t)> const& each)
{
    std::size_t begin = 0;
    bool digits = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const here = utf8_at(text, at);
        auto const is = is_digit(here.code);
        if (at > begin && (is != digits || (is && step.individual))) {
            each(begin, at);
            begin = at;
        }
        digits = is;
        at += here.bytes;
    }
    if (begin < text.size()) {
        each(begin, text.size());
    }
}

void pre_tokenizer::split(std::string_view text, bool begins, std::size_t from, take const& each) const
{
    if (text.empty()) {
        return;
    }
    if (from == steps_.size()) {
        each(text);
        return;
    }
    auto const& here = steps_[from];
    if (std::holds_alternative<byte_symbols>(here)) {
        each(text);
        return;
    }
    if (std::holds_alternative<prefix_blank>(here)) {
        split(text.starts_with(' ') ? std::string{text} : ' ' + std::string{text}, begins, from + 1, each);
        return;
    }
    if (auto const* const marks = std::get_if<metaspace>(&here)) {
        std::string marked;
        for (char const c : text) {
            c == ' ' ? marked.append(marks->mark) : marked.append(1, c);
        }
        if (marks->prepend != metaspace::prepended::never && (begins || marks->prepend == metaspace::prepended::always) && !marked.starts_with(marks->mark)) {
            marked.insert(0, marks->mark);
        }
        if (!marks->split) {
            split(marked, begins, from + 1, each);
            return;
        }
        auto all = stretches_of(std::string_view{marks->mark}, marked);
        apply(split_behavior::merged_with_next, all);
        for (auto const& one : all) {
            split(std::string_view{marked}.substr(one.begin, one.end - one.begin), begins && one.begin == 0, from + 1, each);
        }
        return;
    }
    auto const all = std::visit(
        [&](auto const& splits) -> std::vector<stretch> {
            if constexpr (requires { split_one(splits, text); }) {
                return split_one(splits, text);
            } else {
                return {};
            }
        },
        here);
    for (auto const& one : all) {
        split(text.substr(one.begin, one.end - one.begin), begins && one.begin == 0, from + 1, each);
    }
}

std::optional<std::size_t> pre_tokenizer::resumable_step() const
{
    for (auto const& one : steps_) {
        if (auto const* const marks = std::get_if<metaspace>(&one); marks != nullptr && marks->prepend == metaspace::prepended::first) {
            return std::nullopt;  // it asks where the text begins
        }
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (auto const* const found = std::get_if<split_by_regex>(&steps_[i])) {
            auto const plain = found->behavior == split_behavior::isolated && found->pattern.looks_only_ahead();
            return plain ? std::optional{i} : std::nullopt;
        }
        if (!std::holds_alternative<split_digits>(steps_[i])) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

metaspace const* pre_tokenizer::only_metaspace() const { return steps_.size() == 1 ? std::get_if<metaspace>(&steps_.front()) : nullptr; }

}  // namespace rheo::inline v0
