// SPDX-License-Identifier: Apache-2.0
#include "executor/text/normalizer.hpp"

#include <algorithm>

#include <utf8proc.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

template <class Change>
std::string each_character(std::string_view text, Change change)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        auto const here = utf8_at(text, at);
        change(here.code, text.substr(at, here.bytes), out);
        at += here.bytes;
    }
    return out;
}

std::string applied(unicode_form form, std::string_view text) { return normalize_with_places(form, text).text; }

std::string applied(lowercase, std::string_view text)
{
    return each_character(text, [](char32_t code, std::string_view, std::string& out) {
        if (code == 0x130) {  // the one character whose small letter is two
            out += "i\xcc\x87";
        } else {
            append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
        }
    });
}

std::string applied(strip_accents, std::string_view text)
{
    return each_character(text, [](char32_t code, std::string_view bytes, std::string& out) {
        auto const category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
        if (category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC && category != UTF8PROC_CATEGORY_ME) {
            out += bytes;
        }
    });
}

std::string applied(prepend const& step, std::string_view text) { return text.empty() ? std::string{} : step.text + std::string{text}; }

std::string applied(strip step, std::string_view text)
{
    while (step.left && !text.empty() && is_white_space(utf8_at(text, 0).code)) {
        text.remove_prefix(utf8_at(text, 0).bytes);
    }
    while (step.right && !text.empty() && is_white_space(utf8_at(text, utf8_before(text, text.size())).code)) {
        text = text.substr(0, utf8_before(text, text.size()));
    }
    return std::string{text};
}

std::string applied(replace_text const& step, std::string_view text) { return replaced(step, text); }
std::string applied(replace_regex const& step, std::string_view text) { return replaced(step, text); }

void read_into(nlohmann::json const& value, std::vector<normalizer::step>& steps)
{
    if (value.is_null()) {
        return;
    }
    auto const type = text_member(value, "type");
    if (type == "Sequence") {
        only_keys(value, "normalizer", {"type", "normalizers"});
        for (auto const& part : list_member(value, "normalizers")) {
            read_into(part, steps);
        }
    } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
        only_keys(value, "normalizer", {"type"});
        steps.emplace_back(unicode_form{.composed = type.back() == 'C', .compatibility = type[2] == 'K'});
    } else if (type == "Lowercase") {
        only_keys(value, "normalizer", {"type"});
        steps.emplace_back(lowercase{});
    } else if (type == "StripAccents") {
        only_keys(value, "normalizer", {"type"});
        steps.emplace_back(strip_accents{});
    } else if (type == "Prepend") {
        only_keys(value, "normalizer", {"type", "prepend"});
        steps.emplace_back(prepend{text_member(value, "prepend")});
    } else if (type == "Strip") {
        only_keys(value, "normalizer", {"type", "strip_left", "strip_right"});
        steps.emplace_back(strip{truth_member(value, "strip_left"), truth_member(value, "strip_right")});
    } else if (type == "Replace") {
        std::visit([&](auto&& made) { steps.emplace_back(std::move(made)); }, read_replacement(value, "normalizer"));
    } else {
        refuse_part("normalizer.type", type, "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Prepend, Strip, Replace, Sequence");
    }
}

}  // namespace

std::string normalizer::apply(std::string_view text, bool begins) const
{
    std::string result{text};
    for (auto const& one : steps_) {
        if (begins || !std::holds_alternative<prepend>(one)) {
            result = std::visit([&](auto const& change) { return applied(change, result); }, one);
        }
    }
    return result;
}

unicode_form const* normalizer::only_form() const
{
    auto const* const form = steps_.size() == 1 ? std::get_if<unicode_form>(&steps_.front()) : nullptr;
    return form != nullptr && !form->compatibility ? form : nullptr;
}

bool normalizer::marks_blanks(std::string_view mark) const
{
    auto rest = steps_.begin();
    if (rest != steps_.end() && std::holds_alternative<prepend>(*rest)) {
        ++rest;
    }
    auto const* const marks = rest != steps_.end() ? std::get_if<replace_text>(&*rest) : nullptr;
    return marks != nullptr && rest + 1 == steps_.end() && marks->pattern == " " && marks->by == mark;
}

normalizer read_normalizer(nlohmann::json const& value)
{
    std::vector<normalizer::step> steps;
    read_into(value, steps);
    return normalizer{std::move(steps)};
}

}  // namespace rheo::inline v0
