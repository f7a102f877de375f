#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tokens to llm.c's token files (executor/data/token_file_form.hpp). Files have temporary names until all are whole; when writing ends early they are gone.
// One file has at most as many tokens as its header can say: what is more goes into further files, NAME.00000.bin, NAME.00001.bin, ...

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/data/token_file_form.hpp"

namespace rheo::inline v0 {

class token_file_writer {
public:
    /// @param path of the file @throws exit_error (environment) naming it: it cannot be written
    token_file_writer(std::string path, token_file_form form, std::int64_t most_tokens = most_tokens_of_a_file);
    ~token_file_writer();
    token_file_writer(token_file_writer const&) = delete;
    token_file_writer& operator=(token_file_writer const&) = delete;

    void write(std::span<std::int32_t const> tokens);

    /// Ends the last file and gives all their names. Returns them.
    std::vector<std::string> finish();

    std::int64_t count() const { return count_; }

private:
    std::string path_;
    token_file_form form_;
    std::int64_t most_;
    std::vector<std::string> temporary_;
    int descriptor_ = -1;
    std::int64_t in_file_ = 0;
    std::int64_t count_ = 0;
    std::vector<char> buffer_;

    void begin_file();
    void end_file();
    void flush();
    void put(char const* data, std::size_t size, std::int64_t at);
    [[noreturn]] void fail(std::string const& name) const;
};

}  // namespace rheo::inline v0
