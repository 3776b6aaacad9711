#include "pool.h"

namespace mezzotint {

namespace {

constexpr int kPauses = 2000;  // tens of µs, longer than most waits
constexpr int kIdle = 20000;   // then a worker goes to sleep

}  // namespace

void relax(int spins) {
  if (spins >= kPauses) return std::this_thread::yield();
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Pool::Pool(int threads) : threads_(threads) {
  workers_.reserve(threads - 1);
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { help(t); });
  } catch (...) {  // no thread to be had: stop those that started
    this->~Pool();
    throw;
  }
}

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++number_;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
  workers_.clear();
}

void Pool::run(std::shared_ptr<Job> job) {
  std::lock_guard turn(turn_);
  if (threads_ > 1) {
    std::lock_guard lock(mutex_);
    job_ = job;
    ++number_;
    if (sleepers_) wake_.notify_all();
  }
  job->work(0);
  std::lock_guard lock(mutex_);
  job_.reset();
}

void Pool::quiet() {
  std::lock_guard turn(turn_);
  for (int spins = 0; helping_.load() > 0; ++spins) relax(spins);
}

// Waits for a job newer than `seen`: spinning, since the next pass is often near, then
// asleep. nullptr when the pool stops.
std::shared_ptr<Job> Pool::next_job(uint32_t& seen) {
  for (int spins = 0; spins < kIdle && number_.load() == seen; ++spins) relax(0);
  std::unique_lock lock(mutex_);
  while (!stop_ && (number_.load() == seen || !job_)) {
    seen = number_.load();
    ++sleepers_;
    wake_.wait(lock);
    --sleepers_;
  }
  seen = number_.load();
  if (stop_) return nullptr;
  ++helping_;
  return job_;
}

void Pool::help(int thread) {
  uint32_t seen = 0;
  while (auto job = next_job(seen)) {
    job->work(thread);
    job.reset();
    --helping_;
  }
}

}  // namespace mezzotint
