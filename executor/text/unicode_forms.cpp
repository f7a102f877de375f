// SPDX-License-Identifier: Apache-2.0
// Unicode's normalization forms. Most text is in them already: a table of the characters that are, whatever is beside them, leaves only the stretches
// around others to utf8proc. A stretch begins with the last stable character before, with which what follows may be composed.
#include <array>
#include <bitset>
#include <cstdlib>
#include <memory>
#include <new>

#include <utf8proc.h>

#include "executor/text/normalizer.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t planes_end = 0x30000;  ///< what lies beyond is looked up one by one; it is rare
using stable_set = std::bitset<planes_end>;

int flags_of(unicode_form form)
{
    return UTF8PROC_STABLE | (form.composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (form.compatibility ? UTF8PROC_COMPAT : 0);
}

constexpr bool is_vowel_or_final_jamo(char32_t code) { return (code >= 0x1161 && code <= 0x1175) || (code >= 0x11a8 && code <= 0x11c2); }

/// What a character is alone, without composition.
std::size_t decompose(unicode_form form, char32_t code, std::array<utf8proc_int32_t, 32>& out)
{
    auto const flags = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form.compatibility ? UTF8PROC_COMPAT : 0));
    auto const count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), out.data(), static_cast<utf8proc_ssize_t>(out.size()), flags, nullptr);
    return count < 0 ? 0U : static_cast<std::size_t>(count);
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
    utf8proc_uint8_t* made = nullptr;
    auto const bytes = utf8proc_map(reinterpret_cast<utf8proc_uint8_t const*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &made,
                                    static_cast<utf8proc_option_t>(flags_of(form)));
    std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const owner{made, &std::free};
    return bytes == static_cast<utf8proc_ssize_t>(text.size()) && text == std::string_view{reinterpret_cast<char const*>(made), text.size()};
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

void append_form(std::string& out, unicode_form form, std::string_view stretch)
{
    utf8proc_uint8_t* made = nullptr;
    auto const bytes = utf8proc_map(reinterpret_cast<utf8proc_uint8_t const*>(stretch.data()), static_cast<utf8proc_ssize_t>(stretch.size()), &made,
                                    static_cast<utf8proc_option_t>(flags_of(form)));
    std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> const owner{made, &std::free};
    if (bytes < 0) {
        throw std::bad_alloc{};  // the only error that valid UTF-8 leaves
    }
    out.append(reinterpret_cast<char const*>(made), static_cast<std::size_t>(bytes));
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
    auto found = std::string::npos;
    if (parts.empty()) {
        return at;
    }
    for (std::size_t i = parts.size(); i-- > 0;) {
        if (parts[i].at <= at) {
            if (parts[i].same || parts[i].at == at) {
                found = parts[i].source + (at - parts[i].at);
            }
            break;
        }
    }
    return found;
}

}  // namespace rheo::inline v0
