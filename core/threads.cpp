#include "threads.h"

#include <pthread.h>
#include <sched.h>  // sched_getaffinity, of Linux
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sphynx {

namespace {

std::atomic<unsigned> most_cores = 0;

struct Job {
    void (*run)(const void*, std::size_t);
    const void* context;
    std::size_t count;
    std::size_t next = 0;     // the first range that nobody has taken
    std::size_t running = 0;  // taken by others than the caller, and not done
};

class Pool {
  public:
    void work_on(Job& job) {
        const unsigned cores = available_cores();
        std::unique_lock lock(mutex_);
        cores_ = cores;
        jobs_.push_back(&job);  // may throw: nothing is counted yet
        ++busy_;
        const std::size_t wanted = std::min<std::size_t>(cores - 1, job.count - 1);
        while (helpers_ < wanted && start_helper()) {
        }
        wake_.notify_all();
        while (job.next < job.count) {
            const std::size_t range = job.next++;
            lock.unlock();
            job.run(job.context, range);
            lock.lock();
        }
        std::erase(jobs_, &job);
        --busy_;  // from here on this thread waits: its core is another's
        wake_.notify_one();
        done_.wait(lock, [&] { return job.running == 0; });
    }

  private:
    // Whether another one runs now. Where the machine has no thread or memory left, the callers do the work
    // themselves.
    bool start_helper() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the threads that the program knows
        bool started = true;
        try {
            std::thread([this] { help(); }).detach();
            ++helpers_;
        } catch (const std::exception&) {
            started = false;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return started;
    }

    [[noreturn]] void help() {
        std::unique_lock lock(mutex_);
        for (;;) {
            Job* job = nullptr;
            wake_.wait(lock, [&] { return busy_ < cores_ && (job = next_job()) != nullptr; });
            ++busy_;
            bool more = true;
            while (more) {
                const std::size_t range = job->next++;
                ++job->running;
                lock.unlock();
                job->run(job->context, range);
                lock.lock();
                more = job->next < job->count && busy_ <= cores_;
                if (--job->running == 0) done_.notify_all();  // the caller may end, and the job with it
            }
            --busy_;
        }
    }

    // One that has ranges left; callers take turns. Allocates nothing: helpers have nobody to tell.
    Job* next_job() {
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
            std::rotate(jobs_.begin(), jobs_.begin() + 1, jobs_.end());
            Job* job = jobs_.back();
            if (job->next < job->count) return job;
        }
        return nullptr;
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<Job*> jobs_;
    std::size_t helpers_ = 0;
    unsigned busy_ = 0;  // threads at work: callers and helpers
    unsigned cores_ = 1;
};

// Never destroyed: its threads end with the process.
std::atomic<Pool*> the_pool = nullptr;

Pool& pool() {
    Pool* found = the_pool.load();
    if (found == nullptr) {
        static const int at_fork = pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; });
        (void)at_fork;
        auto* made = new Pool;
        if (the_pool.compare_exchange_strong(found, made)) return *made;
        delete made;
    }
    return *found;
}

}  // namespace

unsigned available_cores() {
    const unsigned limit = most_cores.load(std::memory_order_relaxed);
    unsigned cores = std::thread::hardware_concurrency();
#if defined(__linux__)
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        cores = static_cast<unsigned>(CPU_COUNT(&allowed));
#endif
    return std::max(1u, limit ? std::min(limit, cores) : cores);
}

void limit_cores(unsigned most) {
    most_cores = most;
}

void run_in_pool(std::size_t count, void (*run)(const void*, std::size_t), const void* context) {
    if (available_cores() == 1) {
        for (std::size_t i = 0; i < count; ++i) run(context, i);
        return;
    }
    Job job{run, context, count};
    pool().work_on(job);
}

}  // namespace sphynx
