// SPDX-License-Identifier: Apache-2.0
// in_place [count]: random layouts under memory limits, over the ranks that it is started on. An element is a page of memory; what a plan drops is given back to
// the system when its round has ended and cannot be read any more. The resident pages of each rank are counted: never more than the plan says, which
// is never more than the limit, and f + 1 copies of each element are at some rank at any time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../support/random_layouts.hpp"
#include "executor/reshard/reshard.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/tensor/digest.hpp"

using namespace rheo;
using random_layouts::below;

namespace {

int wrong = 0;
long dropped_pages = 0;

void check(bool right, std::string const& what)
{
    if (!right && ++wrong < 10) {
        std::printf("wrong: %s\n", what.c_str());
    }
}

/// All of a tensor in address space, of which only some pages are memory.
class image {
public:
    explicit image(nd_shape const& shape)
        : shape_{shape}, page_{static_cast<std::size_t>(sysconf(_SC_PAGESIZE))}, pages_{static_cast<std::size_t>(shape[0] * shape[1])}
    {
        auto* const mapped =
            mmap(nullptr, std::max<std::size_t>(pages_, 1) * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            std::perror("mmap");
            std::abort();
        }
        base_ = static_cast<std::byte*>(mapped);
        madvise(base_, pages_ * page_, MADV_NOHUGEPAGE);
    }
    ~image() { munmap(base_, std::max<std::size_t>(pages_, 1) * page_); }
    image(image const&) = delete;
    image& operator=(image const&) = delete;

    std::size_t page_bytes() const { return page_; }
    std::size_t pages() const { return pages_; }
    std::byte* at(std::int64_t a, std::int64_t b) const { return base_ + static_cast<std::size_t>(a * shape_[1] + b) * page_; }
    std::vector<std::int64_t> strides() const { return {shape_[1], 1}; }

    /// One byte per page: whether it is memory.
    std::vector<unsigned char> resident() const
    {
        std::vector<unsigned char> in(pages_);
        if (pages_ > 0 && mincore(base_, pages_ * page_, in.data()) != 0) {
            std::perror("mincore");
            std::abort();
        }
        for (auto& one : in) {
            one &= 1U;
        }
        return in;
    }

    /// Gives the pages of a box back: the system stops a process that touches them later.
    void drop(nd_box const& box) const
    {
        for (auto a = box[0].begin; a < box[0].end; ++a) {
            for (auto b = box[1].begin; b < box[1].end; ++b) {
                madvise(at(a, b), page_, MADV_DONTNEED);
                mprotect(at(a, b), page_, PROT_NONE);
                ++dropped_pages;
            }
        }
    }

private:
    nd_shape shape_;
    std::size_t page_;
    std::size_t pages_;
    std::byte* base_;
};

std::uint64_t word_of(int tensor, std::int64_t a, std::int64_t b, std::size_t i)
{
    return mix_bits(mix_bits(static_cast<std::uint64_t>(a * 1000 + b) * 8 + static_cast<std::uint64_t>(tensor)) + i);
}

template <class Use>
void each_page(nd_box const& box, Use const& use)
{
    for (auto a = box[0].begin; a < box[0].end; ++a) {
        for (auto b = box[1].begin; b < box[1].end; ++b) {
            use(a, b);
        }
    }
}

struct run_of_plan {
    reshard_request const& request;
    reshard_plan const& plan;
    std::deque<image>& images;
    rank_id self;
    std::vector<std::vector<unsigned char>> first_copies{};  ///< of all ranks, by tensor and page
    std::size_t drop = 0;
    long most = 0;  ///< pages of this rank
    std::string name;

    void count()
    {
        long pages = 0;
        for (auto const& each : images) {
            for (auto const in : each.resident()) {
                pages += in;
            }
        }
        most = std::max(most, pages);
    }

    std::vector<std::vector<unsigned char>> copies() const
    {
        std::vector<std::vector<unsigned char>> all;
        for (auto const& each : images) {
            all.push_back(each.resident());
            MPI_Allreduce(MPI_IN_PLACE, all.back().data(), static_cast<int>(all.back().size()), MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
        }
        return all;
    }

    void drop_after(int round)
    {
        for (; drop < plan.dropped.size() && plan.dropped[drop].round == round; ++drop) {
            if (auto const& one = plan.dropped[drop]; one.rank == self) {
                images[at(one.part.tensor)].drop(one.part.box);
            }
        }
        auto const now = copies();
        for (std::size_t t = 0; t < now.size(); ++t) {
            for (std::size_t p = 0; p < now[t].size(); ++p) {
                check(now[t][p] >= std::min<int>(first_copies[t][p], request.failures + 1), name + "copies after round " + std::to_string(round));
            }
        }
    }
};

/// @return whether there was a plan within the limit
bool run(unsigned seed, rank_id self, int ranks)
{
    std::mt19937 draw{seed};
    std::vector<layout_tensor> tensors(1 + draw() % 2);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        tensors[t] = {
            .name = tensor_name{"t" + std::to_string(t)}, .shape = {1 + below(draw, 8), 1 + below(draw, 8)}, .element = {bytes{sysconf(_SC_PAGESIZE)}}};
    }
    reshard_request request{.from = random_layouts::random_layout(tensors, ranks, draw), .to = random_layouts::random_layout(tensors, ranks, draw)};
    request.failures = below(draw, 2);
    if (draw() % 2 == 0) {
        request.round_budget = kibibytes(4 * (1 + below(draw, 8)));
    }
    auto const& loose = try_reshard(request).plan.certificate.peak;
    auto const page = sysconf(_SC_PAGESIZE);
    request.memory_limit = loose.bound + bytes{page * below(draw, static_cast<int>((loose.value - loose.bound).count / page) + 1)};
    auto const out = try_reshard(request);
    auto const name = "round " + std::to_string(seed) + ", rank " + std::to_string(self.value) + ": ";
    if (out.fault) {
        check(out.fault.error == reshard_error::little_memory, name + std::string{describe(out.fault).view()});
        return false;
    }
    check(describe(verify(out.plan, request)).empty(), name + std::string{describe(verify(out.plan, request)).view()});

    std::deque<image> images;
    for (auto const& tensor : request.from.tensors) {
        images.emplace_back(tensor.shape);
    }
    std::vector<held_array> held;
    std::vector<wanted_array> wanted;
    for (auto const* const place : {find_place(request.from, self)}) {
        for (auto const& part : place->parts) {
            auto const& memory = images[at(part.tensor)];
            each_page(part.box, [&](std::int64_t a, std::int64_t b) {
                auto* const words = reinterpret_cast<std::uint64_t*>(memory.at(a, b));
                for (std::size_t i = 0; i < memory.page_bytes() / sizeof(std::uint64_t); ++i) {
                    words[i] = word_of(part.tensor.value, a, b, i);
                }
            });
            held.push_back({part.tensor, tensor_role::parameter, part.box, memory.at(part.box[0].begin, part.box[1].begin), bytes{page}, memory.strides()});
        }
    }
    auto const* const place = find_place(request.to, self);
    for (auto const& part : place->parts) {
        auto const& memory = images[at(part.tensor)];
        wanted.push_back({part.tensor, tensor_role::parameter, part.box, memory.at(part.box[0].begin, part.box[1].begin), bytes{page}, memory.strides()});
    }

    run_of_plan state{.request = request, .plan = out.plan, .images = images, .self = self, .name = name};
    state.first_copies = state.copies();
    state.count();
    state.drop_after(-1);
    reshard_options options;
    options.message = bytes{draw() % 3 == 0 ? 3000 : 1 << 16};
    options.shared_from = bytes{draw() % 2 == 0 ? 0 : 1 << 20};  // by memory of the node, or not
    options.round_ended = [&](int round) {
        state.count();
        state.drop_after(round);
    };
    reshard(MPI_COMM_WORLD, out.plan, held, wanted, options);
    long most = 0;
    MPI_Allreduce(&state.most, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    check(most * page == out.plan.certificate.peak.value.count,
          name + std::to_string(most) + " pages at the peak of " + std::to_string(out.plan.certificate.peak.value.count) + " bytes");
    check(most * page <= request.memory_limit->count, name + "under the limit");
    for (auto const& part : place->parts) {
        each_page(part.box, [&](std::int64_t a, std::int64_t b) {
            auto const& memory = images[at(part.tensor)];
            auto const* const words = reinterpret_cast<std::uint64_t const*>(memory.at(a, b));
            for (std::size_t i = 0; i < memory.page_bytes() / sizeof(std::uint64_t); ++i) {
                check(words[i] == word_of(part.tensor.value, a, b, i), name + "tensor " + std::to_string(part.tensor.value) + " " + to_string(part.box));
            }
        });
    }
    return true;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    auto const count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100;
    unsigned planned = 0;
    for (unsigned seed = 1; seed <= count && wrong == 0; ++seed) {
        try {
            planned += run(seed, rank_id{rank}, ranks) ? 1U : 0U;
        } catch (std::exception const& error) {
            check(false, "round " + std::to_string(seed) + ": " + error.what());
        }
        int any = wrong;  // a rank that stops alone leaves the others waiting
        MPI_Allreduce(&any, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    long dropped = 0;
    MPI_Allreduce(&dropped_pages, &dropped, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(planned > count / 4 && dropped > static_cast<long>(count),
          std::to_string(planned) + " plans of " + std::to_string(count) + ", " + std::to_string(dropped) + " pages dropped");
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
