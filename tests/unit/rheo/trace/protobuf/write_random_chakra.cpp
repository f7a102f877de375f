// SPDX-License-Identifier: Apache-2.0
// Writes a Chakra file of random nodes, which have every form that a node can have, to standard output: write_random_chakra <seed> <nodes>
#include <cstdio>
#include <cstdlib>

#include "../chakra/owned_node.hpp"

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::fputs("write_random_chakra <seed> <nodes>\n", stderr);
        return 2;
    }
    test::chakra_pool pool;
    test::random_nodes draw{pool, static_cast<unsigned>(std::atoi(argv[1]))};
    rheo::chakra_attribute const schema[] = {rheo::make_attribute("schema", "1.0.2-chakra.0.0.4")};
    rheo::chakra_writer writer{[](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); }, rheo::chakra_metadata{"1.0.0", schema}};
    for (int i = std::atoi(argv[2]); i > 0; --i) {
        writer.add(draw.next());
    }
    writer.finish();
    return std::fflush(stdout) == 0 ? 0 : 1;
}
