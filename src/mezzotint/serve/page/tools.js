// Example tools for chat and race. Nothing is behind them: who calls them is shown the call.

const argument = (type, more = {}) => ({ type, ...more });

const tool = (name, description, properties, required) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required, additionalProperties: false } },
});

const TOOLS = [
  tool("set_timer", "Start a countdown timer.", {
    minutes: argument("integer", { minimum: 1, maximum: 600, description: "how long, in minutes" }),
    label: argument("string"),
  }, ["minutes"]),
  tool("set_reminder", "Remind the user of something at a given time.", {
    task: argument("string"),
    when: argument("string", { format: "date-time" }),
    repeat: argument("string", { enum: ["daily", "weekly", "monthly", "weekdays"] }),
  }, ["task", "when"]),
  tool("get_weather", "Get the weather of a city.", {
    city: argument("string"),
    date: argument("string", { format: "date" }),
  }, ["city"]),
  tool("set_light", "Set a light's brightness or color.", {
    light: argument("string"),
    room: argument("string"),
    brightness: argument("integer", { minimum: 0, maximum: 100 }),
  }, ["light"]),
];

/** The system message that tells the time, as the built-in model was trained to read it. */
function today(now = new Date()) {
  const two = (value) => String(value).padStart(2, "0");
  const named = (day) => day.toLocaleDateString("en", { weekday: "short" });
  const short = (day) => `${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  const ahead = (days) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
  const week = [1, 2, 3, 4, 5, 6].map(ahead).map((day) => `${named(day)} ${short(day)}`);
  const date = `${now.getFullYear()}-${short(now)} ${two(now.getHours())}:${two(now.getMinutes())}`;
  return { role: "system", content: `Now: ${named(now)} ${date}. ${week.join(", ")}` };
}

/** What a request adds to offer the tools. */
export const offering = (messages) => ({ messages: [today(), ...messages], tools: TOOLS });

/** A call's arguments as name and value, or null while they are no whole JSON. */
export function argumentsOf(call) {
  try {
    return Object.entries(JSON.parse(call.function.arguments));
  } catch {
    return null;
  }
}
