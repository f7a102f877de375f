// SPDX-License-Identifier: Apache-2.0
// A request to change the plan of a running job, from the command to the job and back.
#include "executor/records/reshape_request.hpp"

#include <filesystem>
#include <fstream>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

TEST_CASE("reshape_request: asked, read, answered")
{
    temporary_folder const folder;
    auto const path = folder.path.string();
    CHECK_FALSE(has_reshape_request(path));
    CHECK(read_reshape_request(path).empty());
    std::vector<std::string> const settings{"plan.tensor=2", "plan.pipelines=[4, 4]"};
    write_reshape_request(path, settings, "a");
    CHECK(has_reshape_request(path));
    CHECK(read_reshape_request(path) == settings);
    CHECK_THROWS_AS(write_reshape_request(path, settings, "b"), exit_error);
    CHECK_FALSE(find_reshape_answer(path, "a"));

    reshape_answer const made{12, true, "plan changed"};
    answer_reshape_request(path, made);
    CHECK_FALSE(has_reshape_request(path));
    CHECK(find_reshape_answer(path, "a") == made);
    CHECK_FALSE(find_reshape_answer(path, "b"));

    write_reshape_request(path, settings, "b");
    reshape_answer const refused{13, false, "too few ranks"};
    answer_reshape_request(path, refused);
    CHECK(find_reshape_answer(path, "b") == refused);
    CHECK(find_reshape_answer(path, "a") == made);
}

TEST_CASE("reshape_request: written by hand")
{
    temporary_folder const folder;
    auto const path = folder.path.string();
    std::ofstream{folder.path / "reshape.toml"} << "# more width\n\n  plan.tensor =  2 \r\nnonsense\n";
    CHECK(read_reshape_request(path) == std::vector<std::string>{"plan.tensor=2", "nonsense"});
    CHECK(remove_reshape_request(path));
    CHECK_FALSE(remove_reshape_request(path));
}
