#pragma once
// SPDX-License-Identifier: Apache-2.0

// A text that is shown while it is made: what each token adds, whole characters only. A token may hold a part of a character, which decodes to U+FFFD or
// to bytes that are no character yet; they wait for the next tokens.

#include <cstddef>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

class text_stream {
public:
    /// What can be shown behind what was shown before. @param whole the text of all tokens so far
    std::string add(std::string_view whole) { return more(whole.substr(0, settled(whole))); }

    /// The rest, of the text of all tokens.
    std::string finish(std::string_view whole) { return more(whole); }

private:
    static constexpr std::string_view replacement = "\xef\xbf\xbd";

    /// Bytes up to the end of the last whole character.
    static std::size_t settled(std::string_view text)
    {
        while (text.ends_with(replacement)) {
            text.remove_suffix(replacement.size());
        }
        for (std::size_t back = 1; back <= 4 && back <= text.size(); ++back) {
            auto const c = static_cast<unsigned char>(text[text.size() - back]);
            if ((c & 0xc0U) == 0x80U) {
                continue;  // of a character that begins before it
            }
            std::size_t const length = c >= 0xf0U ? 4 : c >= 0xe0U ? 3 : c >= 0xc0U ? 2 : 1;
            return length > back ? text.size() - back : text.size();
        }
        return text.size();
    }

    std::string more(std::string_view text)
    {
        if (!text.starts_with(shown_)) {
            return {};  // the tokenizer writes the beginning otherwise, now that more follows
        }
        std::string added{text.substr(shown_.size())};
        shown_ = text;
        return added;
    }

    std::string shown_{};
};

}  // namespace rheo::inline v0
