//! The protocol: rmcp reads and writes messages, one thread answers calls.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::oneshot;

use super::call::Answers;
use super::tools::TOOLS;

const INSTRUCTIONS: &str = "\
etwprof answers questions about CPU profiles of Windows programs, recorded by ETW. Begin with `open` (without files it lists the \
recordings) and `findings`; then `top`, `callers`, `callees`, `tree` and `lines` show where the time went, and `diff` what changed \
between two recordings. Samples are counts; fields that end in `_ns` are nanoseconds. Read `warnings`: they say what the recording \
or its symbols lack. `cut` says how much of a list was left out; ask for less (pid, name, function, rows) to see the rest.";

/// A call, and where its answer goes.
struct Call {
    name: String,
    arguments: JsonObject,
    answer: oneshot::Sender<Result<Value>>,
}

/// Hands calls to the thread that answers.
struct Server {
    calls: mpsc::Sender<Call>,
}

pub(super) fn run(folders: Vec<PathBuf>, options: Vec<OsString>) -> Result<()> {
    let (calls, asked) = mpsc::channel::<Call>();
    let answers = thread::Builder::new().name("answers".to_owned()).spawn(move || {
        let answers = Answers::new(folders, options);
        for Call { name, arguments, answer } in asked {
            // A fault in one answer must not take the others with it.
            let result = panic::catch_unwind(AssertUnwindSafe(|| answers.answer(&name, &arguments)));
            let result = result
                .unwrap_or_else(|_| Err(anyhow!("{name} failed by a fault of etwprof; please report it")));
            // Nobody waits for the answer of a call that was cancelled.
            let _heard_or_not = answer.send(result);
        }
    });
    let answers = answers.context("cannot start a thread")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("cannot start the server")?;
    runtime.block_on(async {
        let server = Server { calls }
            .serve(rmcp::transport::stdio())
            .await
            .context("the client does not speak MCP")?;
        server.waiting().await.context("the connection broke")
    })?;
    // A read of stdin that nobody waits for must not hold the end up.
    runtime.shutdown_background();
    drop(answers);
    Ok(())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("etwprof", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(|tool| tool.definition()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.into_owned();
        if !TOOLS.iter().any(|tool| tool.name == name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None));
        }
        let (answer, answered) = oneshot::channel();
        let call = Call { name, arguments: request.arguments.unwrap_or_default(), answer };
        let gone = |_| ErrorData::internal_error("the server stops", None);
        self.calls.send(call).map_err(|_| gone(()))?;
        let result = match answered.await.map_err(|_| gone(()))? {
            Ok(value) => CallToolResult::structured(value),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(format!("{error:#}"))]),
        };
        Ok(result.into())
    }
}
