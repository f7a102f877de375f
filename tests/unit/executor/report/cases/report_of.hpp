#pragma once
// SPDX-License-Identifier: Apache-2.0

// A folder in which small runs are trained, and the parts of a page's data by name.

#include <filesystem>
#include <string>
#include <vector>

#include "executor/report/blocks.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

inline bool has(std::string const& text, std::string const& what) { return text.find(what) != text.npos; }

struct trained_folder : temporary_folder {
    trained_folder()
    {
        write("text", std::string(3000, 'a') + "bcdefgh");
        write("c.toml",
              "schema = 1\n[model]\ncontext = 8\nwidth = 8\nheads = 2\nblocks = 1\n[data]\npaths = [\"text\"]\n[train]\nsteps = 4\n"
              "microbatches = 2\nmicrobatch = { sequences = 1, tokens = 8 }\n[plan]\nfailures = 0\n");
    }

    outcome rheo(std::string const& arguments) const { return run_rheo(*this, arguments); }
    std::string of(std::string const& run) const { return (path / run).string(); }
    void train(std::string const& run, std::string const& settings = "") const
    {
        auto const trained = rheo("train c.toml --json --set run.folder='" + run + "' " + settings);
        CAPTURE(trained.err);
        REQUIRE(trained.exit_code == 0);
    }
};

/// A copy of a run: a training starts a process, so there is one for all cases of a file.
struct folder_with_run : trained_folder {
    explicit folder_with_run(std::string const& name)
    {
        static trained_folder const once;
        if (!std::filesystem::exists(once.path / "run")) {
            once.train("run");
        }
        std::filesystem::copy(once.path / "run", path / name, std::filesystem::copy_options::recursive);
    }
};

inline std::vector<std::string> names_of(rheo::page_block const& page)
{
    std::vector<std::string> names;
    for (auto const& section : page["sections"]) {
        names.push_back(section["name"].get<std::string>());
    }
    return names;
}

inline rheo::page_block sections_of(rheo::page_block const& page, std::string const& name)
{
    for (auto const& section : page["sections"]) {
        if (section["name"] == name) {
            return section;
        }
    }
    FAIL("the page has no section " << name);
    return {};
}

/// The first of a type.
inline rheo::page_block block_of(rheo::page_block const& page, std::string const& section, std::string const& type)
{
    auto const blocks = sections_of(page, section)["blocks"];
    for (auto const& block : blocks) {
        if (block["type"] == type) {
            return block;
        }
    }
    FAIL("the section " << section << " has no block " << type);
    return {};
}
