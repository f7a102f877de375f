// SPDX-License-Identifier: Apache-2.0
// Unicode's normalization forms. Most text is in them already: a table of the characters that are, whatever is beside them, leaves only the stretches
// around others to utf8proc. A stretch begins with the last stable character before, with which what follows may be composed.
#include <algorithm>
#include <array>
#include <bitset>
#include <iterator>
#include <memory>
#include <vector>

#include <utf8proc.h>

#include "executor/text/normalizer.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t planes_end = 0x30000;  ///< what lies beyond is looked up one by one; it is rare
using stable_set = std::bitset<planes_end>;

constexpr bool is_vowel_or_final_jamo(char32_t code) { return (code >= 0x1161 && code <= 0x1175) || (code >= 0x11a8 && code <= 0x11c2); }

/// What a character is alone, without composition.
std::size_t decompose(unicode_form form, char32_t code, std::array<utf8proc_int32_t, 32>& out)
{
    auto const flags = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form.compatibility ? UTF8PROC_COMPAT : 0));
    auto const count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), out.data(), static_cast<utf8proc_ssize_t>(out.size()), flags, nullptr);
    return count < 0 ? 0U : static_cast<std::size_t>(count);
}

/// Canonical ordering (UAX 15): marks in a row by their classes. utf8proc's own takes quadratic time for long rows.
void order_marks(std::vector<utf8proc_int32_t>& codes)
{
    auto const class_of = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
    for (auto begin = codes.begin(); begin != codes.end();) {
        auto const end = std::find_if(begin, codes.end(), [&](utf8proc_int32_t code) { return class_of(code) == 0; });
        std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return class_of(a) < class_of(b); });
        begin = end == codes.end() ? end : std::next(end);
    }
}

void append_form(std::string& out, unicode_form form, std::string_view stretch)
{
    std::vector<utf8proc_int32_t> codes;
    std::array<utf8proc_int32_t, 32> parts{};
    for (std::size_t at = 0; at < stretch.size();) {
        auto const here = utf8_at(stretch, at);
        auto const count = decompose(form, here.code, parts);
        codes.insert(codes.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
        at += here.bytes;
    }
    order_marks(codes);
    if (form.composed) {
        auto const flags = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        codes.resize(static_cast<std::size_t>(utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), flags)));
    }
    for (auto const code : codes) {
        append_utf8(out, static_cast<char32_t>(code));
    }
}

bool is_same_alone(unicode_form form, char32_t code)
{
    std::array<utf8proc_int32_t, 32> parts{};
    auto const count = decompose(form, code, parts);
    if (count == 1 && static_cast<char32_t>(parts[0]) == code) {
        return true;
    }
    if (!form.composed) {
        return false;
    }
    std::string text;
    append_utf8(text, code);
    std::string made;
    append_form(made, form, text);
    return made == text;
}

bool may_join_before(unicode_form form, char32_t code, stable_set const& seconds)
{
    auto const* const property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    return property->combining_class != 0 || (form.composed && (is_vowel_or_final_jamo(code) || (code < planes_end && seconds[code])));
}

/// The characters that are second in the canonical decomposition of another: they may be composed with what is before them.
std::unique_ptr<stable_set> composed_seconds()
{
    auto seconds = std::make_unique<stable_set>();
    std::array<utf8proc_int32_t, 32> parts{};
    for (char32_t code = 0; code < planes_end; ++code) {
        auto const count = decompose({.composed = false, .compatibility = false}, code, parts);
        for (std::size_t i = 1; i < count; ++i) {
            if (static_cast<std::size_t>(parts[i]) < planes_end) {
                seconds->set(static_cast<std::size_t>(parts[i]));
            }
        }
    }
    return seconds;
}

stable_set const& seconds_of_compositions()
{
    static auto const seconds = composed_seconds();
    return *seconds;
}

bool look_up(unicode_form form, char32_t code) { return !may_join_before(form, code, seconds_of_compositions()) && is_same_alone(form, code); }

template <bool Composed, bool Compatibility>
stable_set const& table()
{
    static auto const made = [] {
        auto set = std::make_unique<stable_set>();
        for (char32_t code = 0; code < planes_end; ++code) {
            set->set(code, look_up({Composed, Compatibility}, code));
        }
        return set;
    }();
    return *made;
}

stable_set const& table_of(unicode_form form)
{
    if (form.composed) {
        return form.compatibility ? table<true, true>() : table<true, false>();
    }
    return form.compatibility ? table<false, true>() : table<false, false>();
}

}  // namespace

bool is_stable(unicode_form form, char32_t code) { return code < 0x80 || (code < planes_end ? table_of(form)[code] : look_up(form, code)); }

normalized_text normalize_with_places(unicode_form form, std::string_view text)
{
    normalized_text result;
    auto const& stable = table_of(form);
    std::size_t copied = 0;       // up to here the text is in the result
    std::size_t last_stable = 0;  // where the last stable character began
    for (std::size_t at = 0; at < text.size();) {
        if (static_cast<unsigned char>(text[at]) < 0x80) {
            last_stable = at++;
            continue;
        }
        auto const here = utf8_at(text, at);
        if (here.code < planes_end ? stable[here.code] : look_up(form, here.code)) {
            last_stable = at;
            at += here.bytes;
            continue;
        }
        auto const begin = last_stable < copied ? copied : last_stable;
        auto end = at + here.bytes;
        while (end < text.size()) {
            auto const next = utf8_at(text, end);
            if (is_stable(form, next.code)) {
                break;
            }
            end += next.bytes;
        }
        if (begin > copied || result.parts.empty()) {
            result.parts.push_back({result.text.size(), copied, true});
        }
        result.text.append(text, copied, begin - copied);
        result.parts.push_back({result.text.size(), begin, false});
        append_form(result.text, form, text.substr(begin, end - begin));
        copied = last_stable = at = end;
        result.parts.push_back({result.text.size(), copied, true});
    }
    result.text.append(text, copied);
    return result;
}

std::size_t normalized_text::source_of(std::size_t at) const
{
    if (parts.empty()) {
        return at;
    }
    auto const& found = *std::prev(std::upper_bound(parts.begin(), parts.end(), at, [](std::size_t place, part const& p) { return place < p.at; }));
    return found.same || found.at == at ? found.source + (at - found.at) : std::string::npos;
}

}  // namespace rheo::inline v0
