// SPDX-License-Identifier: Apache-2.0
// What the literature promises of each family at f, i, w per full stage and no transfer time: bubbles, spans and peaks.
#include <tuple>
#include <vector>

#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct times {
    double f;
    double i;
    double w;
    double gain = 0.0;
};

constexpr stage_cost full_stage(times t) { return {{t.f}, {t.i + t.w}, {t.i}, {t.w}, {0.0}, {0.0}, {t.gain}}; }

template <class Family>
constexpr schedule_figures figures(schedule_shape shape, times t = {1.0, 1.0, 1.0})
{
    auto const p = Family::program(shape);
    return figures_of(p, even_costs(p, full_stage(t)));
}

auto const any_costs = {times{1.0, 1.0, 1.0}, {2.0, 3.0, 1.0}, {3.0, 1.0, 2.0}, {5.0, 6.0, 4.0}, {1.0, 4.0, 2.0}, {4.0, 1.0, 1.0}};

Approx about(double value) { return Approx(value).margin(1e-9); }

}  // namespace

static_assert(figures<zb_h1>({.ranks = 4, .microbatches = 8}).makespan_bubble == seconds{3.0});
static_assert(figures<zb_h2>({.ranks = 4, .microbatches = 8}).span_bubble == seconds{0.0});
static_assert(figures<zb_v>({.ranks = 4, .microbatches = 8}).span_bubble == seconds{0.0});

TEST_CASE("values: GPipe, 1F1B: bubble (p - 1)(f + b), optimal")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 10; ++m) {
            for (auto const t : any_costs) {
                CHECK(figures<gpipe>({p, m}, t).makespan_bubble.count == about((p - 1) * (t.f + t.i + t.w)));
                CHECK(figures<one_f_one_b>({p, m}, t).makespan_bubble.count == about((p - 1) * (t.f + t.i + t.w)));
                CHECK(figures<one_f_one_b>({p, m}, t).is_shortest());
            }
        }
    }
}

TEST_CASE("values: interleaved: makespan bubble (p - 1)(f + b) / v")
{
    for (int p = 1; p <= 5; ++p) {
        for (int v = 1; v <= 4; ++v) {
            for (int m = p; m <= 13; ++m) {
                for (int g = p; g <= m; ++g) {
                    if (m % g != 0 && m % g < p) {
                        continue;
                    }
                    INFO("p " << p << " v " << v << " m " << m << " g " << g);
                    CHECK(figures<interleaved>({p, m, v, g}).makespan_bubble.count == about((p - 1) * 3.0 / v));
                    CHECK(figures<interleaved>({p, m, v, g}, {2.0, 3.0, 1.0}).makespan_bubble.count == about((p - 1) * 6.0 / v));
                }
            }
        }
    }
}

TEST_CASE("values: ZB-H1: bubble (p - 1)(f + i - w), peak p")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = p; m <= 3 * p + 1; ++m) {
            for (auto const t : {times{1, 1, 1}, {2, 3, 1}, {5, 6, 4}, {3, 1, 2}, {3, 4, 3}}) {
                INFO("p " << p << " m " << m << " f " << t.f << " i " << t.i << " w " << t.w);
                auto const x = figures<zb_h1>({p, m}, t);
                CHECK(x.span_bubble.count == about((p - 1) * (t.f + t.i - t.w)));
                if (t.w <= t.i) {
                    CHECK(x.makespan_bubble.count == about((p - 1) * (t.f + t.i - t.w)));
                }
                CHECK(x.peaks == std::vector<int>(static_cast<std::size_t>(p), p));
            }
        }
    }
}

TEST_CASE("values: ZB-H2: span (p - 1)(f + i - 2 w), peak 2 p - 1")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = 2 * p - 1; m <= 4 * p; ++m) {
            for (auto const t : {times{1, 1, 1}, {2, 3, 1}, {5, 6, 4}, {3, 1, 2}, {3, 4, 3}}) {
                INFO("p " << p << " m " << m << " f " << t.f << " i " << t.i << " w " << t.w);
                CHECK(figures<zb_h2>({p, m}, t).span_bubble.count == about((p - 1) * (t.f + t.i - 2 * t.w)));
            }
            CHECK(figures<zb_h2>({p, m}).makespan_bubble.count == about(p - 1));
            CHECK(figures<zb_h2>({p, m}).peaks == std::vector<int>(static_cast<std::size_t>(p), 2 * p - 1));
        }
    }
}

TEST_CASE("values: ZB-V: span 0, bubble (p - 1) f / 2, peak 2 p")
{
    for (int p = 1; p <= 7; ++p) {
        for (int m = 2 * p - 1; m <= 4 * p; ++m) {
            for (double const f : {1.0, 3.0}) {
                INFO("p " << p << " m " << m);
                auto const x = figures<zb_v>({p, m}, {f, f, f});
                CHECK(x.span_bubble.count == about(0.0));
                CHECK(x.makespan_bubble.count == about((p - 1) * f / 2));
                CHECK(*std::max_element(x.peaks.begin(), x.peaks.end()) == 2 * p);
            }
        }
    }
}

TEST_CASE("values: ZB-H2 is no longer than ZB-H1")
{
    for (int p = 1; p <= 10; ++p) {
        for (int m = 1; m <= 3 * p; ++m) {
            INFO("p " << p << " m " << m);
            auto const x = figures<zb_h2>({p, m});
            CHECK(x.makespan.count <= figures<zb_h1>({p, m}).makespan.count);
            CHECK((m < p || x.is_shortest()));
            if (m == p) {
                CHECK(zb_h2::program({p, m}) == zb_h1::program({p, m}));
            }
        }
    }
    for (auto const t : any_costs) {
        CHECK(figures<zb_h2>({8, 8}, t).makespan.count <= figures<zb_h1>({8, 8}, t).makespan.count);
    }
}

TEST_CASE("values: ZB-V for few microbatches is PyTorch's")
{
    CHECK(to_text(zb_v::program({2, 1})) == "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n");
    CHECK(to_text(zb_v::program({3, 2})) == R"(0F0,0F1,5F0,5I0,5W0,5F1,5I1,5W1,0I0,0W0,0I1,0W1
1F0,1F1,4F0,4F1,4I0,4W0,4I1,4W1,1I0,1W0,1I1,1W1
2F0,3F0,2F1,3F1,3I0,3W0,2I0,2W0,3I1,3W1,2I1,2W1
)");
    CHECK(to_text(zb_v::program({3, 4})) == R"(0F0,0F1,0F2,0F3,5F0,5I0,5W0,5F1,5I1,5W1,5F2,5I2,5W2,0I0,0W0,5F3,5I3,5W3,0I1,0W1,0I2,0W2,0I3,0W3
1F0,1F1,1F2,4F0,1F3,4F1,4I0,4W0,4F2,4I1,4W1,1I0,1W0,4F3,4I2,4W2,1I1,1W1,4I3,4W3,1I2,1I3,1W2,1W3
2F0,3F0,2F1,3F1,2F2,3F2,3I0,3W0,2F3,2I0,2W0,3F3,3I1,3W1,2I1,2W1,3I2,3W2,2I2,3I3,2I3,2W2,3W3,2W3
)");
    for (int p = 1; p <= 8; ++p) {
        for (int m = 0; m < 2 * p - 1; ++m) {
            INFO("p " << p << " m " << m);
            auto const made = zb_v::program({p, m});
            CHECK(complete(made, m));
            CHECK(deadlock_free<rendezvous>(lower(made)));
        }
    }
}

TEST_CASE("values: V-Half, V-Min: published peaks")
{
    for (int p = 1; p <= 16; ++p) {
        auto const half = peak_activations(v_half::program({p, 4 * p}));
        auto const min = peak_activations(v_min::program({p, 4 * p}));
        INFO("p " << p << " half " << half << " min " << min);
        CHECK((half + 1) / 2 == p / 2 + 1);
        CHECK((min + 1) / 2 == (p + 4) / 3);
    }
}

TEST_CASE("values: V-Half, V-Min: bubble below the paper's")
{
    for (int p = 1; p <= 16; ++p) {
        for (int m = p; m <= 4 * p; m += p) {
            INFO("p " << p << " m " << m);
            CHECK(figures<v_half>({p, m}).makespan_bubble.count <= 1.5 * p);
            CHECK(figures<v_min>({p, m}).makespan_bubble.count <= 2.0 * p);
        }
    }
    CHECK(figures<v_half>({8, 16}).makespan_bubble.count == about(8.5));
    CHECK(figures<v_min>({8, 16}).makespan_bubble.count == about(13.0));
}

TEST_CASE("values: reordering only improves, shortens V-Half")
{
    for (int p = 1; p <= 9; ++p) {
        for (int m = 0; m <= 3 * p; ++m) {
            for (auto const& block : {v_half::block(p), v_min::block(p)}) {
                auto const before = repeated(block, p, m);
                auto const after = reordered(block, p, m);
                INFO("p " << p << " m " << m << '\n' << to_text(after));
                CHECK(complete(after, m));
                CHECK(dependencies_in_order(after));
                CHECK(makespan(after, unit_costs(2 * p)) <= makespan(before, unit_costs(2 * p)));
                CHECK(peak_activations(after) <= peak_activations(before));
            }
        }
        if (p > 1) {
            CHECK(makespan(v_half::program({p, 2 * p}), unit_costs(2 * p)) < makespan(repeated(v_half::block(p), p, 2 * p), unit_costs(2 * p)));
        }
    }
}

TEST_CASE("values: DualPipe: (p/2 - 1)(FB + B - 3 W), peak p + 1")
{
    for (int p = 2; p <= 8; p += 2) {
        for (int m = 2 * p; m <= 4 * p; m += 2) {
            for (auto const t : {times{1, 1, 1}, {2, 2, 1}, {3, 3, 2}}) {
                INFO("p " << p << " m " << m);
                auto const x = figures<dualpipe>({p, m}, t);
                auto const b = t.i + t.w;
                CHECK(x.makespan_bubble.count == about((p / 2 - 1) * (t.f + b + b - 3 * t.w)));
                CHECK(*std::max_element(x.peaks.begin(), x.peaks.end()) == p + 1);
            }
        }
    }
}

TEST_CASE("values: Chimera: bubble (p - 2) max(f, b)")
{
    for (int p = 2; p <= 8; p += 2) {
        for (auto const t : any_costs) {
            auto const most = (p - 2) * std::max(t.f, t.i + t.w);
            CHECK(figures<chimera>({p, p}, t).makespan_bubble.count == about(most));
            for (int m = p + 2; m <= 4 * p; m += 2) {
                INFO("p " << p << " m " << m << " f " << t.f << " b " << t.i + t.w);
                CHECK(figures<chimera>({p, m}, t).makespan_bubble.count <= most + 1e-9);
            }
        }
    }
}

TEST_CASE("values: Chimera: p activations at m = p, m beyond")
{
    for (int p = 2; p <= 8; p += 2) {
        for (int m = p; m <= 4 * p; m += 2) {
            CHECK(peak_activations(chimera::program({p, m})) == m);
        }
    }
}

TEST_CASE("values: BitPipe: the bubble of the paper")
{
    for (int p = 2; p <= 16; p += 2) {
        auto const x = figures<bitpipe>({p, p});
        INFO("p " << p);
        CHECK(x.makespan_bubble / x.makespan == about((p - 2.0) / (3 * p + p - 2)));
        CHECK(*std::max_element(x.peaks.begin(), x.peaks.end()) == 2 * p);
    }
    for (int p = 2; p <= 10; p += 2) {
        for (int m = p; m <= 5 * p; m += 2) {
            INFO("p " << p << " m " << m);
            auto const x = figures<bitpipe>({p, m});
            CHECK(x.makespan_bubble.count <= p - 2 + (m % p == 0 ? 0.0 : 0.5) + 1e-9);
            CHECK(*std::max_element(x.peaks.begin(), x.peaks.end()) <= 3 * p);
        }
    }
    CHECK(figures<bitpipe>({4, 8}).makespan_bubble.count == about(2.0));
}

TEST_CASE("values: Hanayo: at most the bubble of the paper")
{
    for (int p = 1; p <= 8; ++p) {
        for (int w = 1; w <= 4; ++w) {
            auto const share = (2.0 * p - 2) / (3 * p * w + p - 1);
            for (int m = p; m <= 4 * p; m += p) {
                INFO("p " << p << " w " << w << " m " << m);
                auto const x = figures<hanayo>({p, m, 2 * w});
                CHECK(x.makespan_bubble.count <= share * 3 * p / (1 - share) + 1e-9);
                CHECK(*std::max_element(x.peaks.begin(), x.peaks.end()) <= (m == p ? std::max(2, p) * 2 * w : 7 * p * w / 2 + 2 * w));
            }
        }
    }
    CHECK(figures<hanayo>({4, 4, 2}).makespan_bubble.count == about(6.0));
    CHECK(figures<hanayo>({4, 8, 2}).makespan_bubble.count == about(5.0));
    CHECK(figures<hanayo>({4, 4, 8}).makespan_bubble.count == about(1.5));
}

TEST_CASE("values: Seq1F1B: bubble (p - 1)(f + b) / k")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 8; ++m) {
            for (int k = 1; k <= 4; ++k) {
                for (auto const t : any_costs) {
                    INFO("p " << p << " m " << m << " k " << k);
                    CHECK(figures<seq1f1b>({.ranks = p, .microbatches = m, .slices = k}, t).makespan_bubble.count == about((p - 1) * (t.f + t.i + t.w) / k));
                }
            }
        }
    }
}
