// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace standin {

std::string& last_error()
{
    static std::string sentence;
    return sentence;
}

ncclResult_t refused(ncclResult_t code, std::string const& sentence)
{
    last_error() = sentence;
    return code;
}

struct communicator::in_stream {
    std::shared_ptr<communicator> of;
    operations what;
    bool has_begun = false;

    /// All of this process that are not done, in the order of issue.
    static std::vector<in_stream*>& issued()
    {
        static std::vector<in_stream*> all;
        return all;
    }
    bool may_run() const
    {
        for (auto const* earlier : issued()) {
            if (earlier == this) {
                return true;
            }
            if (earlier->of == of || of->how_.exclude) {
                return false;
            }
        }
        return true;
    }
    bool work()
    {
        if (of->is_aborted_ || of->is_broken()) {
            what.poison();
            std::erase(issued(), this);
            return true;
        }
        if (!may_run()) {
            return false;
        }
        if (!std::exchange(has_begun, true)) {
            of->note(what);
        }
        if (!what.advance(of->room_, of->how_.eager)) {
            return false;
        }
        std::erase(issued(), this);
        return true;
    }
};

namespace {

/// Of all kernels of this process, if all of them ran.
int& blocks()
{
    static int sum = 0;
    return sum;
}

}  // namespace

communicator::communicator(ncclUniqueId const& id, int ranks, int rank, int most_blocks, modes how)
    : how_{std::move(how)}, room_{how_.init_never ? ncclUniqueId{} : id, ranks, rank}, polls_left_{how_.in_progress}, most_blocks_{most_blocks}
{
    static auto const multiprocessors = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "rheo_emulated_multiprocessors"));
    blocks() += most_blocks_;
    if (multiprocessors != nullptr && blocks() > multiprocessors()) {
        end_loudly("kernels of " + std::to_string(blocks()) + " blocks would have to find room on " + std::to_string(multiprocessors()) + " multiprocessors");
    }
}

communicator::~communicator() { blocks() -= most_blocks_; }

ncclResult_t communicator::ready() const
{
    if (is_broken_) {
        return refused(ncclRemoteError, "a member is gone");
    }
    if (!is_up_ || parked_ || is_finalized_) {
        return refused(ncclInvalidArgument, "an operation before the one before it was through");
    }
    return ncclSuccess;
}

ncclResult_t communicator::poll()
{
    if (is_broken()) {
        return refused(ncclRemoteError, "a member is gone");
    }
    if (!is_up_ && !room_.all_have_joined()) {
        return ncclInProgress;
    }
    if (polls_left_ > 0) {
        --polls_left_;
        return ncclInProgress;
    }
    is_up_ = true;
    if (parked_) {
        put_now(*std::exchange(parked_, {}));
    }
    return is_finalized_ && !is_idle() ? ncclInProgress : ncclSuccess;
}

ncclResult_t communicator::put(operations some, cudaStream_t stream)
{
    if (how_.in_progress > 0) {
        polls_left_ = how_.in_progress;
        parked_ = {std::move(some), stream};
        return ncclInProgress;
    }
    put_now({std::move(some), stream});
    return ncclSuccess;
}

void communicator::put_now(parked some)
{
    using put_pending = void (*)(void* stream, int (*work)(void* context), void (*destroy)(void* context), void* context);
    static auto const device = reinterpret_cast<put_pending>(::dlsym(RTLD_DEFAULT, "rheo_emulated_put_pending"));
    if (device == nullptr) {
        end_loudly("the program has no emulated device, or does not export it");
    }
    auto* const context = new in_stream{shared_from_this(), std::move(some.what)};
    in_stream::issued().push_back(context);
    device(
        some.stream, [](void* it) { return static_cast<in_stream*>(it)->work() ? 1 : 0; },
        [](void* it) {
            std::erase(in_stream::issued(), static_cast<in_stream*>(it));
            delete static_cast<in_stream*>(it);
        },
        context);
}

bool communicator::is_broken()
{
    is_broken_ = is_broken_ || (how_.remote_error && room_.one_is_gone());
    return is_broken_;
}

bool communicator::is_idle() const
{
    auto const& all = in_stream::issued();
    return !parked_ && std::none_of(all.begin(), all.end(), [&](in_stream const* one) { return one->of.get() == this; });
}

void communicator::abort()
{
    is_aborted_ = true;
    parked_.reset();
    std::erase_if(in_stream::issued(), [&](in_stream const* one) { return one->of.get() == this; });
}

void communicator::note(operations const& begun) const
{
    if (how_.log.empty()) {
        return;
    }
    char line[128];
    auto const length = std::snprintf(line, sizeof line, "%d %s %llu %016llx\n", static_cast<int>(::getpid()), begun.name().c_str(),
                                      static_cast<unsigned long long>(begun.bytes()), static_cast<unsigned long long>(room_.id()));
    auto const file = ::open(how_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, line, static_cast<std::size_t>(length)) != length) {
        end_loudly("its log cannot be written: " + how_.log);
    }
    ::close(file);
}

}  // namespace standin
