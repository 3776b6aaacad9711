#include "pool.h"

namespace mezzotint {

namespace {

inline void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr int kSpins = 2000;        // in a barrier, before yielding the core (tens of µs)
constexpr int kIdleSpins = 20000;   // between jobs, before going to sleep

}  // namespace

Pool::Pool(int threads) : threads_(threads) {
  workers_.reserve(threads - 1);
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (...) {  // no thread to be had: stop those that started
    stop_ = true;
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
    throw;
  }
}

Pool::~Pool() {
  {
    std::lock_guard lock(sleep_mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void Pool::run(const std::function<void(int)>& job) {
  std::lock_guard one(one_job_);
  if (threads_ == 1) return job(0);
  job_ = &job;
  job_number_.fetch_add(1);
  if (sleepers_.load() > 0) {
    std::lock_guard lock(sleep_mutex_);
    wake_.notify_all();
  }
  job(0);
  barrier();
}

void Pool::barrier() {
  if (threads_ == 1) return;
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
    if (spins < kSpins)
      relax();
    else
      std::this_thread::yield();
  }
}

void Pool::await(uint32_t seen) {
  for (int spins = 0; spins < kIdleSpins; ++spins) {
    if (job_number_.load(std::memory_order_acquire) != seen || stop_) return;
    relax();
  }
  std::unique_lock lock(sleep_mutex_);
  ++sleepers_;
  wake_.wait(lock, [&] { return job_number_.load() != seen || stop_; });
  --sleepers_;
}

void Pool::work(int thread) {
  uint32_t seen = 0;
  while (true) {
    await(seen);
    if (stop_) return;
    seen = job_number_.load(std::memory_order_acquire);
    (*job_)(thread);
    barrier();
  }
}

}  // namespace mezzotint
