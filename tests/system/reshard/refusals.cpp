// SPDX-License-Identifier: Apache-2.0
// Two ranks give arrays that are not those of the plan, each mistake in turn: both throw the same sentence, which names the rank and the array, and
// nothing is moved. A call without a mistake ends the list.
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <mpi.h>

#include "executor/reshard/reshard.hpp"
#include "rheo/reshard/reshard_plan.hpp"

using namespace rheo;

namespace {

int wrong = 0;
int self = 0;

void check(bool right, std::string const& what)
{
    if (!right) {
        ++wrong;
        std::printf("wrong on rank %d: %s\n", self, what.c_str());
    }
}

/// Rank 0 has rows 0 and 1 of a matrix of 4 x 3 floats, rank 1 has rows 2 and 3; then it is the other way round.
reshard_plan exchange()
{
    reshard_plan plan;
    layout_tensor tensor{"w", {4, 3}};
    tensor.element[0] = element_format{dtype::f32};
    plan.tensors = {tensor};
    plan.transfers = {{0, rank_id{1}, rank_id{0}, tensor_id{0}, tensor_role::parameter, {{2, 4}, {0, 3}}, bytes{24}},
                      {0, rank_id{0}, rank_id{1}, tensor_id{0}, tensor_role::parameter, {{0, 2}, {0, 3}}, bytes{24}}};
    return plan;
}

struct call {
    reshard_plan plan = exchange();
    std::array<float, 6> have{};
    std::array<float, 6> get{};
    std::vector<held_array> held{};
    std::vector<wanted_array> wanted{};
    reshard_options options{};

    call()
    {
        nd_box const low{{0, 2}, {0, 3}};
        nd_box const high{{2, 4}, {0, 3}};
        for (std::size_t i = 0; i < have.size(); ++i) {
            have[i] = static_cast<float>(self * 6 + static_cast<int>(i));
        }
        held = {{tensor_id{0}, tensor_role::parameter, self == 0 ? low : high, have.data(), dtype::f32}};
        wanted = {{tensor_id{0}, tensor_role::parameter, self == 0 ? high : low, get.data(), dtype::f32}};
    }
    call(call const&) = delete;
    call& operator=(call const&) = delete;
};

/// @param change what rank 1 does wrong; what both do where the sentence is about all
void refused(std::string const& sentence, std::function<void(call&)> const& change)
{
    call c;
    change(c);
    std::string said = "nothing";
    try {
        reshard(MPI_COMM_WORLD, c.plan, c.held, c.wanted, c.options);
    } catch (mismatched_arrays const& error) {
        said = error.what();
    }
    check(said == sentence, "it says '" + said + "', not '" + sentence + "'");
    for (auto const value : c.get) {
        check(value == 0.0F, "nothing is moved: " + sentence);
    }
}

void refused_at_1(std::string const& sentence, std::function<void(call&)> const& change)
{
    refused("rank 1 of the communicator: " + sentence, [&](call& c) {
        if (self == 1) {
            change(c);
        }
    });
}

void arrays()
{
    std::string const place = R"(held array 0 (tensor "w", parameter, [2:4, 0:3]) )";
    refused_at_1(R"(the plan lets it send [2:4, 0:3] of tensor "w" (parameter), but none of its held arrays has these elements)",
                 [](call& c) { c.held.clear(); });
    refused_at_1(R"(the plan lets it receive [1:2, 0:3] of tensor "w" (parameter), but none of its wanted arrays has these elements)",
                 [](call& c) { c.wanted[0].box = {{0, 1}, {0, 3}}; });
    refused_at_1(place + "has elements of 2 bytes (bf16), but the plan takes elements of 4 bytes (f32)", [](call& c) { c.held[0].element = dtype::bf16; });
    refused_at_1(place + "has elements of 4 bytes (i32), but the plan takes elements of 4 bytes (f32)", [](call& c) { c.held[0].element = dtype::i32; });
    refused_at_1(R"(held array 0 (tensor "w", first moment, [2:4, 0:3]) is of a role that the tensor does not have)",
                 [](call& c) { c.held[0].role = tensor_role::first_moment; });
    refused_at_1(R"(held array 0 (tensor "w", parameter, [0:6]) has 1 dimensions, but the tensor has 2)", [](call& c) { c.held[0].box = {{0, 6}}; });
    refused_at_1("wanted array 0 is of tensor number 3, but the plan has 1 tensors", [](call& c) { c.wanted[0].tensor = tensor_id{3}; });
    refused_at_1(place + "has no address", [](call& c) { c.held[0].data = nullptr; });
    refused_at_1(place + "has 1 strides that do not fit: one per dimension, the bytes between two elements in 64 bits",
                 [](call& c) { c.held[0].strides = {3}; });
    refused_at_1(R"(held array 1 (tensor "w", parameter, [3:4, 0:1]) has elements that array 0 has, too: [3:4, 0:1])", [](call& c) {
        c.held.push_back(c.held[0]);
        c.held[1].box = {{3, 4}, {0, 1}};
    });
    std::string const shares = "has strides by which several of its elements share memory: give each element its own";
    for (auto const& strides : {std::vector<std::int64_t>{0, 1}, {3, 0}, {2, 1}, {-2, 1}}) {
        refused_at_1(R"(wanted array 0 (tensor "w", parameter, [0:2, 0:3]) )" + shares, [&](call& c) { c.wanted[0].strides = strides; });
    }
}

/// The plan converts f32 to bf16.
void formats()
{
    auto const convert = [](call& c) {
        c.plan.held = {{c.plan.tensors[0].element}};
        c.plan.tensors[0].element[0] = dtype::bf16;
    };
    std::string const place = R"(rank 0 of the communicator: wanted array 0 (tensor "w", parameter, [2:4, 0:3]) has )";
    refused(place + "elements of 4 bytes (f32), but the plan brings elements of 2 bytes (bf16)", convert);
    refused(place + "the memory of held array 0, but its elements are converted: give it memory of its own", [&](call& c) {
        convert(c);
        c.wanted[0].element = dtype::bf16;
        c.wanted[0].data = c.have.data();
    });
    refused("rank 0 of the communicator: the plan moves tensor \"w\" between formats that are not converted; verify() says what is wrong with a plan",
            [&](call& c) {
                convert(c);
                c.plan.tensors[0].element[0] = dtype::i32;
            });
}

void plans()
{
    refused("the ranks have different plans: make the plan on every rank from the same layouts, or on one and send it to all", [](call& c) {
        if (self == 1) {
            c.plan.transfers.erase(c.plan.transfers.begin());
        }
    });
    refused("rank 0 of the communicator: the plan has a transfer between rank 1 and rank 0, but rank 1 is not in the communicator of 2 ranks",
            [](call& c) { c.options.members = {rank_id{0}, rank_id{7}}; });
    refused("rank 0 of the communicator: the options name 3 members, but the communicator has 2 ranks",
            [](call& c) { c.options.members = {rank_id{0}, rank_id{1}, rank_id{2}}; });
    refused("rank 0 of the communicator: the options name rank 1 twice", [](call& c) { c.options.members = {rank_id{1}, rank_id{1}}; });
    refused("rank 0 of the communicator: messages are 1 byte to 1 GiB long, not 0 bytes", [](call& c) { c.options.message = bytes{0}; });
    refused("the options have messages of 8 bytes at one rank and of 12 at another: give all ranks the same length",
            [](call& c) { c.options.message = bytes{self == 0 ? 12 : 8}; });
    refused("rank 0 of the communicator: the plan has a transfer from rank 1 to rank 0 that no plan has; verify() says what is wrong with a plan",
            [](call& c) { c.plan.transfers[0].box = {{2, 5}, {0, 3}}; });
}

/// The communicator's rank 0 is the plan's rank 1 and the other way round.
void works()
{
    call c;
    c.options.members = {rank_id{1}, rank_id{0}};
    std::swap(c.held[0].box, c.wanted[0].box);
    auto const moved = reshard(MPI_COMM_WORLD, c.plan, c.held, c.wanted, c.options);
    check(moved.sent == bytes{24} && moved.received == bytes{24} && moved.kept == bytes{0} && moved.time >= seconds{0.0}, "what was moved");
    for (std::size_t i = 0; i < c.get.size(); ++i) {
        check(c.get[i] == static_cast<float>((1 - self) * 6 + static_cast<int>(i)), "the other rank's element");
    }
}

/// The same arrays again and again, until the resharding has been moved away.
void prepared()
{
    call c;
    prepared_reshard first{MPI_COMM_WORLD, c.plan, c.held, c.wanted};
    for (int run = 0; run < 3; ++run) {
        c.get.fill(-1.0F);
        c.have[0] = static_cast<float>(100 * run + self);
        first.run();
        check(c.get[0] == static_cast<float>(100 * run + 1 - self) && c.get[5] == static_cast<float>((1 - self) * 6 + 5), "what is held at each run");
    }
    auto second = std::move(first);
    c.get.fill(-1.0F);
    second.run();
    check(c.get[5] == static_cast<float>((1 - self) * 6 + 5), "a resharding that was moved");
    bool refuses = false;
    try {
        first.run();
    } catch (std::logic_error const&) {
        refuses = true;
    }
    check(refuses, "one that was moved away does not run");
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    arrays();
    formats();
    plans();
    works();
    prepared();
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
