// Requests to the service.

import { byId } from "./elements.js";

/** Error of a request, with the message, code and status of the service. */
export class RequestError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

let token = "";
/** The token that is being asked for; undefined if none is. */
let askedToken;

/** Shows the token field, and returns a promise of its content. */
function askForToken(message) {
  if (askedToken) return askedToken;
  byId("token-text").textContent = message;
  byId("token-form").hidden = false;
  byId("token").focus();
  askedToken = new Promise((resolve) => {
    byId("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      token = byId("token").value.trim();
      byId("token").value = "";
      byId("token-form").hidden = true;
      askedToken = undefined;
      resolve();
    }, { once: true });
  });
  return askedToken;
}

/** Sends a request, and returns the answer as text. Asks for a token if the service needs one. */
async function send(method, path, body, signal) {
  for (;;) {
    const sent = token;
    const headers = sent ? { authorization: `Bearer ${sent}` } : {};
    if (body !== undefined) headers["content-type"] = "application/json";
    const options = { method, headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit", signal };
    const answer = await fetch(path, options).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new RequestError("The service does not answer.", "no-answer", 0);
    });
    const text = await answer.text();
    if (answer.ok) return text;
    if (answer.status === 401) {
      // Another request may have got a token meanwhile.
      if (token === sent) await askForToken(sent ? "The service does not know this token. Enter another one." : "This service needs a token for reading.");
      continue;
    }
    throw errorOf(answer.status, text);
  }
}

function errorOf(status, text) {
  try {
    const { error, code } = JSON.parse(text);
    return new RequestError(error, code, status);
  } catch {
    return new RequestError(`The service answered with the status ${status}.`, "status", status);
  }
}

export const get = async (path, signal) => JSON.parse(await send("GET", path, undefined, signal));
export const getText = (path) => send("GET", path);
export const post = async (path, body, signal) => JSON.parse(await send("POST", path, body, signal));

/** Returns a stored document. */
export const getDocument = (id) => get(`/documents/${encodeURIComponent(id)}`);

/** Shows the message of a failed request, or hides the last one. Requests that were ended by the page have no message. */
export function showFailure(error) {
  if (error && error.name === "AbortError") return;
  byId("failure").hidden = !error;
  byId("failure").textContent = error ? error.message : "";
  if (error && !(error instanceof RequestError)) throw error;
}
