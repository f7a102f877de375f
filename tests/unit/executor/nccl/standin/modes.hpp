#pragma once
// SPDX-License-Identifier: Apache-2.0

// What RHEO_STANDIN_NCCL asks for; standin_nccl.cpp says what its words mean.

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace standin {

[[noreturn]] inline void end_loudly(std::string const& sentence)
{
    std::fprintf(stderr, "the stand-in for NCCL: %s\n", sentence.c_str());
    std::abort();
}

struct modes {
    bool remote_error = false;
    bool init_never = false;
    bool init_fails = false;
    bool exclude = false;
    bool eager = false;
    int in_progress = 0;
    std::string log;

    static modes given()
    {
        modes all;
        char const* const text = std::getenv("RHEO_STANDIN_NCCL");
        std::istringstream words{text != nullptr ? text : ""};
        for (std::string word; words >> word;) {
            auto const value = word.substr(word.find('=') + 1);
            if (word == "remote_error") {
                all.remote_error = true;
            } else if (word == "init_never") {
                all.init_never = true;
            } else if (word == "init_fails") {
                all.init_fails = true;
            } else if (word == "exclude") {
                all.exclude = true;
            } else if (word == "eager") {
                all.eager = true;
            } else if (word.starts_with("in_progress=")) {
                all.in_progress = std::atoi(value.c_str());
            } else if (word.starts_with("log=")) {
                all.log = value;
            } else {
                end_loudly("RHEO_STANDIN_NCCL has no word " + word);
            }
        }
        return all;
    }
};

}  // namespace standin
