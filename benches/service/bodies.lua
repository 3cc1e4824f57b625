-- Sends the lines of the file $BODIES, each as the body of one POST request. Each thread of wrk takes its own lines.
-- After the run, prints the rate, percentiles of the latency, and the answers that are no success.

local threads = 0

function setup(thread)
   thread:set("first", threads)
   threads = threads + 1
end

function init()
   count = tonumber(os.getenv("THREADS"))
   bodies, at = {}, 0
   local number = 0
   for line in io.lines(os.getenv("BODIES")) do
      if number % count == first then
         bodies[#bodies + 1] = line
      end
      number = number + 1
   end
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   at = at + 1
   return wrk.format("POST", nil, nil, bodies[(at - 1) % #bodies + 1])
end

function done(summary, latency)
   local seconds = summary.duration / 1e6
   local errors = summary.errors
   io.write(string.format("%.0f\t%.2f\t%.2f\t%.2f\t%d\n", summary.requests / seconds, latency:percentile(50) / 1e3,
      latency:percentile(99) / 1e3, latency.max / 1e3, errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
