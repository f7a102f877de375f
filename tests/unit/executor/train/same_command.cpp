// SPDX-License-Identifier: Apache-2.0
// The line that continues: a shell reads back the words of which it was made.
#include "executor/train/same_command.hpp"

#include <cstdlib>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

TEST_CASE("same_command: a shell reads the words back")
{
    CHECK(shell_line({"mpirun", "-n", "4", "rheo", "train", "a b.toml"}) == "mpirun -n 4 rheo train 'a b.toml'");
    temporary_folder const folder;
    std::vector<std::string> const words{"", "plain-1.toml", "two words", "it's", "a\"b", "$HOME", "*", "data.paths=[\"x\"]", "line\nend", "\\", "~", ";", "-"};
    std::string expected;
    for (auto const& word : words) {
        expected += '<' + word + '>';
    }
    auto const script = folder.write("line.sh", "printf '<%s>' " + shell_line(words) + " >'" + folder.path.string() + "/out'\n");
    REQUIRE(std::system(("sh '" + script + "'").c_str()) == 0);
    CHECK(folder.read("out") == expected);
}

TEST_CASE("same_command: command, with its launcher for several ranks")
{
    auto const one = same_command(1);
    CHECK(one.starts_with("cd /"));
    CHECK(one.find("test_executor") != one.npos);
    CHECK(one.find(" && mpirun ") == one.npos);
    CHECK(same_command(3).find(" && mpirun -n 3 ") != std::string::npos);
    temporary_folder const folder;
    keep_command(folder.path.string(), one);
    CHECK(folder.read("command") == one + '\n');
}
