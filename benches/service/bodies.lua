-- Sends POST requests, and prints the rate, percentiles of the latency, and the number of failed requests.
--
-- $BODIES is a file with the body of one request a line; they are sent again and again. Without it, each request stores a random
-- fingerprint; $SEED is the seed of the random numbers.
--
-- Makes requests in advance, or from few strings, because garbage collection of large tables slows wrk down.

local queries, head

function init()
   wrk.headers["Content-Type"] = "application/json"
   local bodies = os.getenv("BODIES")
   if bodies and bodies ~= "" then
      queries = {}
      for line in io.lines(bodies) do
         queries[#queries + 1] = wrk.format("POST", nil, nil, line)
      end
   else
      math.randomseed(tonumber(os.getenv("SEED")))
      head = wrk.format("POST", nil, nil, '{"fingerprint": "0123456789abcdef"}'):match("^(.*)0123456789abcdef")
   end
end

local at = 0

function request()
   if queries then
      at = at % #queries + 1
      return queries[at]
   end
   return string.format('%s%08x%08x"}', head, math.random(0, 0xffffffff), math.random(0, 0xffffffff))
end

function done(summary, latency)
   local seconds = summary.duration / 1e6
   local errors = summary.errors
   io.write(string.format("%.0f\t%.2f\t%.2f\t%.2f\t%d\n", summary.requests / seconds, latency:percentile(50) / 1e3,
      latency:percentile(99) / 1e3, latency.max / 1e3, errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
