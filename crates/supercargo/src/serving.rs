//! Serves pages over HTTPS to those whom the API server allows.

use std::future::pending;

use anyhow::anyhow;
use supercargo_client::{ApiServer, ConnectOptions};
use supercargo_cluster::{Task, Tasks};
use supercargo_operations::flags::{AccessFlags, ServingFlags};
use supercargo_operations::serve::{
    Access, ApiReviewer, FollowedAuthority, Routes, Server, follow_client_authority, look_up_client_authority,
};
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Serves until it is told to stop; none if the flags say that nothing is served.
pub(crate) async fn serve(
    serving: &ServingFlags,
    access: &AccessFlags,
    server: &ApiServer,
    routes: Routes,
    tasks: &Tasks,
    stop: oneshot::Receiver<()>,
) -> anyhow::Result<Option<Task>> {
    if serving.secure_port == 0 {
        return Ok(None);
    }
    // A connection belongs to the thread that made it: one of the scheduler's is not read during a long decision, for which no page shall wait.
    let server = &server.with_own_connections()?;
    let authority = client_authority(access, server).await?;
    let followed = authority.clone().map(|authority| (server.without_limit(), authority));
    let Some(options) = serving.options(access, authority) else { return Ok(None) };
    let access = Access::new(&access.authorization_always_allow_paths)?
        .with_token_reviewer(reviewer(access.authentication_kubeconfig.as_deref(), server).await?)
        .with_access_reviewer(reviewer(access.authorization_kubeconfig.as_deref(), server).await?);
    let listening = Server::listen(options).await?;
    info!("Serving securely on {}", listening.address());
    let stopped = async move { _ = stop.await };
    let following = async move {
        match followed {
            Some((server, followed)) => follow_client_authority(server, followed).await,
            None => pending().await,
        }
    };
    Ok(Some(tasks.spawn("server", async move {
        tokio::select! {
            () = listening.run(routes, access, stopped) => {}
            never = following => match never {},
        }
    })))
}

/// The authority of client certificates in the cluster, to be followed, if the flags name none.
async fn client_authority(
    access: &AccessFlags,
    server: &ApiServer,
) -> anyhow::Result<Option<FollowedAuthority>> {
    if access.client_ca_file.is_some() || access.authentication_skip_lookup {
        return Ok(None);
    }
    let authority = match look_up_client_authority(&server.without_limit()).await {
        Ok(authority) => authority,
        Err(error) if access.authentication_tolerate_lookup_failure => {
            warn!(
                err = error,
                "Client certificates count for nothing until their authority can be looked up"
            );
            None
        }
        Err(error) => return Err(anyhow!("cannot look up the authority of client certificates: {error}")),
    };
    Ok(Some(FollowedAuthority::new(authority)))
}

/// Asks the API server, as the user that a kubeconfig names, or as we are.
async fn reviewer(kubeconfig: Option<&std::path::Path>, server: &ApiServer) -> anyhow::Result<ApiReviewer> {
    match kubeconfig {
        None => Ok(ApiReviewer::new(server)),
        Some(path) => {
            let options = ConnectOptions { kubeconfig: Some(path.to_owned()), ..ConnectOptions::default() };
            let own = ApiServer::connect(&options).await?;
            // Which of the two users lacks a right, the rule says: only this one reviews.
            Ok(ApiReviewer::new(&own.with_missing_rights(server.missing_rights())))
        }
    }
}
