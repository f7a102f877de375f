// SPDX-License-Identifier: Apache-2.0
// The order of the folders and the house rules, tried on the sources of this project and on texts that break each of them.
#include "rules.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "rheo/version.hpp"
#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

std::string read(fs::path const& file)
{
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::string const opening = "#pragma once\n// SPDX-License-Identifier: Apache-2.0\n// What this is.\n";
std::string const space = "namespace rheo::inline v0 {}\n";

std::size_t wrong(std::string const& path, std::string const& text) { return tree::complaints_about_header(path, text).size(); }

}  // namespace

TEST_CASE("rules: the headers of the library keep the rules")
{
    fs::path const root = fs::path(RHEO_SOURCE_DIR) / "include" / "rheo";
    int seen = 0;
    for (auto const& entry : fs::recursive_directory_iterator(root)) {
        if (entry.is_regular_file()) {
            auto const path = entry.path().lexically_relative(root).generic_string();
            CAPTURE(path);
            CHECK(tree::ends(path, ".hpp"));
            for (auto const& complaint : tree::complaints_about_header(path, read(entry.path()))) {
                FAIL_CHECK(complaint);
            }
            ++seen;
        }
    }
    CHECK(seen > 0);
}

TEST_CASE("rules: all other sources keep the rules")
{
    fs::path const root = RHEO_SOURCE_DIR;
    for (auto const* folder : {"executor", "kernels", "examples", "bench", "tests", "cmake"}) {
        if (!fs::exists(root / folder)) {
            continue;
        }
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            auto const path = entry.path().lexically_relative(root).generic_string();
            if (entry.is_regular_file() && (tree::ends(path, ".hpp") || tree::ends(path, ".cpp") || tree::ends(path, ".cu"))) {
                CAPTURE(path);
                for (auto const& complaint : tree::complaints_about_source(path, read(entry.path()))) {
                    FAIL_CHECK(complaint);
                }
            }
        }
    }
}

TEST_CASE("rules: no folder is crowded")
{
    fs::path const root = RHEO_SOURCE_DIR;
    for (auto const* folder : {"include", "executor", "kernels", "tests/unit", "tests/system", "bench"}) {
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (entry.is_directory()) {
                auto const path = entry.path().lexically_relative(root).generic_string();
                CAPTURE(path);
                CHECK(std::count_if(fs::directory_iterator(entry.path()), {}, [](auto const& e) { return e.is_regular_file(); }) <=
                      std::ptrdiff_t{tree::most_files});
            }
        }
    }
}

TEST_CASE("rules: tests/unit mirrors the sources")
{
    fs::path const root = RHEO_SOURCE_DIR;
    for (auto const& [tests, sources] : {std::pair{"tests/unit/rheo", "include/rheo"}, std::pair{"tests/unit/executor", "executor"}}) {
        for (auto const& entry : fs::directory_iterator(root / tests)) {
            auto const name = entry.path().filename().string();
            CAPTURE(tests, name);
            CHECK(entry.is_directory());
            CHECK(fs::is_directory(root / sources / name));
        }
    }
}

TEST_CASE("rules: a script that names its interpreter is executable")
{
    fs::path const root = RHEO_SOURCE_DIR;
    int scripts = 0;
    for (auto const* folder : {"tests", "examples", "bench", "cmake", "executor", ".ci"}) {
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (entry.is_regular_file() && read(entry.path()).starts_with("#!")) {
                CAPTURE(entry.path().lexically_relative(root).generic_string());
                CHECK((entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none);
                ++scripts;
            }
        }
    }
    CHECK(scripts > 0);
}

TEST_CASE("rules: CITATION.cff names the version of the build")
{
    fs::path const root = RHEO_SOURCE_DIR;
    CHECK(read(root / "CITATION.cff").find("\nversion: " RHEO_VERSION "\n") != std::string::npos);
}

TEST_CASE("rules: each rule catches a text that breaks it")
{
    REQUIRE(wrong("model/layer.hpp", opening + "#include <rheo/tensor/shape.hpp>\n#include <vector>\n" + space) == 0);
    REQUIRE(wrong("model.hpp", opening + "#include <rheo/model/layer.hpp>\n") == 0);

    CHECK(wrong("model/layer.hpp", opening.substr(13) + space) == 1);                                        // no #pragma once
    CHECK(wrong("model/layer.hpp", "#pragma once\n// What this is.\n" + space) == 1);                        // no SPDX line
    CHECK(wrong("model/layer.hpp", "#pragma once\n// SPDX-License-Identifier: Apache-2.0\n" + space) == 1);  // no paragraph
    CHECK(wrong("model/layer.hpp", opening + space + std::string(400, '\n')) == 1);                          // too long
    CHECK(wrong("model/layer.hpp", opening) == 1);                                                           // no namespace
    CHECK(wrong("misc/layer.hpp", opening + space) == 1);                                                    // no such folder
    CHECK(wrong("model/layer.hpp", opening + "#include <rheo/schedule/core/program.hpp>\n" + space) == 1);   // order
    CHECK(wrong("model/layer.hpp", opening + "#include \"rheo/planner/x.hpp\"\n" + space) == 1);             // order
    CHECK(wrong("model/layer.hpp", opening + "#include \"op.hpp\"\n" + space) == 1);                         // path
    CHECK(wrong("model/layer.hpp", opening + "#include <rheo/tensor.hpp>\n" + space) == 1);                  // umbrella
    CHECK(wrong("model/layer.hpp", opening + "#include <mpi.h>\n" + space) == 1);                            // MPI
    CHECK(wrong("model/layer.hpp", opening + "#include <range/v3/all.hpp>\n" + space) == 1);                 // all ranges
    CHECK(wrong("model/layer.hpp", opening + "struct s { virtual void f(); };\n" + space) == 1);             // virtual
    CHECK(wrong("model/layer.hpp", opening + "#define RHEO_X 1\n" + space) == 1);                            // macro
    CHECK(wrong("model/layer.hpp", opening + "inline void f() { std::abort(); }\n" + space) == 1);           // abort
    CHECK(wrong("model/layer.hpp", opening + "// a virtual table is not meant: abort(), exit()\n" + space) == 0);
    CHECK(wrong("schedule/check/a.hpp", opening + "#include \"rheo/schedule/core/program.hpp\"\n" + space) == 0);
    CHECK(wrong("schedule/check/a.hpp", opening + "#include \"rheo/schedule/draw/svg.hpp\"\n" + space) == 1);              // floor
    CHECK(wrong("simulate/network/a.hpp", opening + "#include \"rheo/simulate/collectives/chunks.hpp\"\n" + space) == 1);  // floor
    CHECK(wrong("simulate/collectives/a.hpp", opening + "#include \"rheo/simulate/network/route.hpp\"\n" + space) == 0);
    CHECK(wrong("schedule/a.hpp", opening + space) == 1);                            // no floor
    CHECK(wrong("model.hpp", opening + "int x;\n") == 1);                            // only includes
    CHECK(wrong("model.hpp", opening + "#include <rheo/tensor/shape.hpp>\n") == 1);  // its own folder

    std::string const spdx = "// SPDX-License-Identifier: Apache-2.0\n";
    CHECK(tree::complaints_about_source("executor/os/a.cpp", spdx + "#include <vector>\n").empty());
    CHECK(tree::complaints_about_source("executor/os/a.cpp", "#include <vector>\n").size() == 1);
    CHECK(tree::complaints_about_source("executor/os/a.cpp", spdx + "#include <rheo/model.hpp>\n").size() == 1);  // umbrella
    CHECK(tree::complaints_about_source("executor/a.cpp", spdx).size() == 1);                                     // no room
    CHECK(tree::complaints_about_source("executor/state/a.cpp", spdx + "#include \"executor/config/config.hpp\"\n").empty());
    CHECK(tree::complaints_about_source("executor/config/a.cpp", spdx + "#include \"executor/state/transfer.hpp\"\n").size() == 1);  // floor
    CHECK(tree::complaints_about_source("executor/state/a.cpp", spdx + "#include \"config/config.hpp\"\n").size() == 1);             // path
    CHECK(tree::complaints_about_source("tests/a.cpp", spdx + "TEST_CASE(\"plan: equal plans are equal\")\n").empty());
    CHECK(tree::complaints_about_source("tests/a.cpp", spdx + "TEST_CASE(\"equal plans are equal\")\n").size() == 1);
    CHECK(tree::complaints_about_source("tests/a.cpp", spdx + "TEST_CASE(\"plan: " + std::string(55, 'a') + "\")\n").size() == 1);
    CHECK(tree::complaints_about_source("examples/01_a.cpp", "// SPDX-License-Identifier: Apache-2.0\n" + std::string(60, '\n')).size() == 1);
}
