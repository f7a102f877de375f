// SPDX-License-Identifier: Apache-2.0
#include "folder_reader.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "executor/records/record_files.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/report/run_page.hpp"
#include "readers.hpp"
#include "rheo/units/exit_error.hpp"

namespace fuzz {

namespace {

namespace fs = std::filesystem;

/// A folder of this process, gone at its end.
struct own_folder {
    fs::path path = fs::temp_directory_path() / ("rheo-fuzz-run-" + std::to_string(::getpid()));

    own_folder()
    {
        fs::create_directories(path / "ranks");
        fs::create_directories(path / "trace");
        write("config.toml", "schema = 1\n");
        write("metrics.jsonl", "");
    }
    ~own_folder()
    {
        std::error_code error;
        fs::remove_all(path, error);
    }
    own_folder(own_folder const&) = delete;
    own_folder& operator=(own_folder const&) = delete;

    void write(char const* name, std::string_view text) const { std::ofstream{path / name, std::ios::binary | std::ios::trunc} << text; }
};

}  // namespace

void records(std::span<std::uint8_t const> bytes)
{
    static own_folder const run;
    for (auto const* const name : {"metrics.jsonl", "report.json", "ranks/0.json", "trace/rank-0.jsonl"}) {
        run.write(name, text_of(bytes));
        try {
            promise(rheo::page_of(rheo::run_page(run.path.string())).ends_with("</html>\n"), "a folder that was read has a whole page");
        } catch (rheo::exit_error const& error) {
            promise(error.code == rheo::exit_code::bad_data, "a refusal has the exit code of its reader");
            auto const message = std::string_view{error.what()};
            bool const lines = name == std::string_view{"metrics.jsonl"};
            promise(message.starts_with("'" + (run.path / name).string() + (lines ? "', line " : "' ")),
                    "a refusal names the file, and the line where there are several");
            promise(message.find("json.exception") == message.npos, "a refusal is a sentence");
        }
        run.write(name, "");
        if (name != std::string_view{"metrics.jsonl"}) {
            fs::remove(run.path / name);
        }
    }
}

}  // namespace fuzz
