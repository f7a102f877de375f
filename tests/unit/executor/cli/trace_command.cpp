// SPDX-License-Identifier: Apache-2.0
// `rheo trace check` as its users start it: traces that pass, packed ones, and each kind of refusal.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rheo/trace/chakra/writer.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

/// A rank of two that reduces in a group.
std::string trace_of(std::int64_t bytes)
{
    std::array const attributes{make_attribute("is_cpu_op", false), make_attribute("comm_type", std::int64_t{0}), make_attribute("comm_size", bytes),
                                make_attribute("pg_name", "1")};
    std::string file;
    chakra_writer writer{[&](std::string_view piece) { file += piece; }, chakra_metadata{"1.0.0"}};
    writer.add({.id = 1, .name = "REDUCE 0", .type = chakra_node_type::comm_coll, .attributes = attributes});
    writer.finish();
    return file;
}

void write_job(temporary_folder const& folder, std::int64_t bytes_of_second = 8)
{
    folder.write("job.0.et", trace_of(8));
    folder.write("job.1.et", trace_of(bytes_of_second));
    folder.write("job.groups.json", R"({"1": [0, 1]})");
}

std::string refused(temporary_folder const& folder)
{
    auto const shown = run_rheo(folder, "trace check job");
    CHECK(shown.exit_code == 4);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("trace_command: traces that keep the contract pass")
{
    temporary_folder const folder;
    write_job(folder);
    auto const shown = run_rheo(folder, "trace check job");
    CHECK(shown.exit_code == 0);
    CHECK(shown.out ==
          "job: 2 ranks, 2 nodes, 1 group: keeps the contract of consumers and ends\n"
          "without time for messages and collectives rank 0 ends last, after 1e-09 s\n");
}

TEST_CASE("trace_command: files of gzip are unpacked, torn ones refused")
{
    temporary_folder const folder;
    write_job(folder);
    auto const plain = run_rheo(folder, "trace check job");
    REQUIRE(std::system(("cd '" + folder.path.string() + "' && gzip job.1.et && mv job.1.et.gz job.1.et").c_str()) == 0);
    auto const packed = run_rheo(folder, "trace check job");
    if (packed.err.find("does not unpack") != packed.err.npos) {
        WARN("rheo was built without zlib: it refuses packed traces");
        return;
    }
    CHECK(packed.exit_code == 0);
    CHECK(packed.out == plain.out);
    auto const bytes = folder.read("job.1.et");
    folder.write("job.1.et", bytes.substr(0, bytes.size() / 2));
    CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring("job.1.et: cannot be read: "));
    folder.write("job.1.et", bytes.substr(0, 10));
    CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring("job.1.et: "));
}

TEST_CASE("trace_command: refusals name the file and the reason")
{
    temporary_folder const folder;
    CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring("job.0.et: no such file"));
    write_job(folder, 9);
    CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring("group 1: collective 1 is ALL_REDUCE of 8 bytes"));
    write_job(folder);
    for (auto const& [groups, sentence] :
         {std::pair{"[]", "is no object"}, std::pair{R"({"0": [0]})", "names a group '0'"}, std::pair{R"({"1": [0, 2]})", "a rank of a group"},
          std::pair{R"({"1": [0, 0]})", "names a rank twice"}, std::pair{R"({"1": [0]})", "a group that rank 1 is not in"}}) {
        folder.write("job.groups.json", groups);
        CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring(sentence));
    }
    write_job(folder);
    folder.write("job.1.et", "\x07");
    CHECK_THAT(refused(folder), Catch::Matchers::ContainsSubstring("job.1.et: byte 0: a message of 7 bytes where 0 are left"));
}
