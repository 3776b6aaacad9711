// A pool of threads that run one function together and meet at barriers inside it.
// Workers spin briefly between jobs, then sleep; a barrier spins, then yields, so that a
// busy machine slows a pass down and never stalls it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mezzotint {

class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Runs job(thread) on every thread, the caller's included, and waits for all. One job at
  // a time: a second caller waits. The job must not throw.
  void run(const std::function<void(int)>& job);

  // Inside a job: waits until every thread has come here.
  void barrier();

 private:
  void work(int thread);
  void await(uint32_t seen);

  const int threads_;
  std::mutex one_job_;
  const std::function<void(int)>* job_ = nullptr;
  std::atomic<uint32_t> job_number_{0};
  std::atomic<bool> stop_{false};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  std::vector<std::thread> workers_;
};

}  // namespace mezzotint
